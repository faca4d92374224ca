// The clocks that a span meets: the tick counter it is stamped with, and the
// kernel's MONOTONIC, MONOTONIC_RAW and REALTIME that its file speaks of.
//
// Header-only so that a time stamp is two instructions inside the caller. All
// values are nanoseconds since each clock's own origin, except ticks.
#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace shp {

// What `Ticks` counts in this arena. Numbers are part of the arena ABI.
enum class ClockKind : uint32_t {
  kMonotonic = 0,  // ticks are CLOCK_MONOTONIC nanoseconds
  kTsc = 1,        // x86-64 invariant time stamp counter, rdtsc
  kCntvct = 2,     // aarch64 virtual counter, cntvct_el0
};

inline int64_t clock_ns(clockid_t clock) noexcept {
  timespec ts;
  clock_gettime(clock, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

inline int64_t monotonic_ns() noexcept {
  return clock_ns(CLOCK_MONOTONIC);
}

// The counter itself, unserialised: the CPU may move it a few tens of cycles
// against its neighbours, which is below what a span can resolve anyway.
inline uint64_t hardware_ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<uint64_t>(monotonic_ns());
#endif
}

inline uint64_t ticks_of(ClockKind kind) noexcept {
  return kind == ClockKind::kMonotonic ? static_cast<uint64_t>(monotonic_ns())
                                       : hardware_ticks();
}

// One look at all clocks at once. `monotonic_ns` ends a bracket of two
// MONOTONIC reads that `uncertainty_ns` is the whole width of; REALTIME and RAW
// were read inside it and moved to its end, so they are off by half of it at
// most. `ticks` belongs to `monotonic_ns`, off by at most half of `tick_window`
// counter steps. Plain data: it travels in messages (common/protocol) as it is.
struct ClockSample {
  uint64_t ticks = 0;
  uint64_t tick_window = 0;
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
  int64_t monotonic_raw_ns = 0;
  int64_t uncertainty_ns = 0;
};
static_assert(sizeof(ClockSample) == 48);

// Takes the tightest of `tries` looks (each about 100 ns). Never fails.
ClockSample sample_clocks(ClockKind kind, int tries = 8) noexcept;

// The best counter that may be trusted on this machine: TSC when the CPU says
// invariant and the kernel itself uses it as its clock source, cntvct on
// aarch64, else MONOTONIC. Reads /sys once; call it off the hot path.
ClockKind best_clock_kind() noexcept;

}  // namespace shp
