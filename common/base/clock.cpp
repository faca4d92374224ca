#include "common/base/clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace shp {
namespace {

// MONOTONIC, REALTIME, RAW, then MONOTONIC again with the counter read on both
// sides of it. The last MONOTONIC read is the sample's instant, since it is the
// one that the counter brackets; the others were read half a bracket earlier on
// average, and are moved there.
ClockSample sample_once(ClockKind kind) noexcept {
  ClockSample sample;
  const int64_t before = monotonic_ns();
  sample.realtime_ns = clock_ns(CLOCK_REALTIME);
  sample.monotonic_raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
  const bool hardware = kind != ClockKind::kMonotonic;
  const uint64_t first = hardware ? hardware_ticks() : 0;
  sample.monotonic_ns = monotonic_ns();
  const uint64_t last = hardware ? hardware_ticks() : 0;
  sample.uncertainty_ns = sample.monotonic_ns - before;
  sample.realtime_ns += sample.uncertainty_ns / 2;
  sample.monotonic_raw_ns += sample.uncertainty_ns / 2;
  sample.tick_window = last - first;
  sample.ticks = hardware ? first + sample.tick_window / 2
                          : static_cast<uint64_t>(sample.monotonic_ns);
  return sample;
}

#if defined(__x86_64__)
bool tsc_is_invariant() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & (1U << 8)) != 0;
}

bool kernel_trusts_tsc() noexcept {
  char name[16] = {};
  const int fd =
      open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
           O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  const ssize_t got = read(fd, name, sizeof(name) - 1);
  close(fd);
  return got >= 3 && std::strncmp(name, "tsc", 3) == 0;
}
#endif

}  // namespace

ClockSample sample_clocks(ClockKind kind, int tries) noexcept {
  ClockSample best = sample_once(kind);
  for (int i = 1; i < tries; ++i) {
    const ClockSample next = sample_once(kind);
    if (next.uncertainty_ns + static_cast<int64_t>(next.tick_window) <
        best.uncertainty_ns + static_cast<int64_t>(best.tick_window)) {
      best = next;
    }
  }
  return best;
}

ClockKind best_clock_kind() noexcept {
#if defined(__x86_64__)
  return tsc_is_invariant() && kernel_trusts_tsc() ? ClockKind::kTsc
                                                   : ClockKind::kMonotonic;
#elif defined(__aarch64__)
  return ClockKind::kCntvct;
#else
  return ClockKind::kMonotonic;
#endif
}

}  // namespace shp
