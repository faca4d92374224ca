// A process under SHP_OUTPUT_DIR starts its session by itself, at its first
// span.

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <new>

#include "common/base/clock.h"
#include "preload/futex.h"
#include "preload/log.h"
#include "preload/recorder.h"
#include "preload/session.h"

namespace shp::recorder {
namespace {

constexpr int64_t kStartWaitNs = 2'000'000'000;

// The process's first span under SHP_OUTPUT_DIR: it starts the session.
void try_start() {
  const Result<std::string> started =
      start_session_by_itself(std::getenv("SHP_OUTPUT_DIR"));
  if (!started) {
    log_line("SHP_OUTPUT_DIR", started.error().message);
    return;
  }
  g_process.arena->header->lost_no_ring.fetch_add(
      g_wiped.lost_while_starting.exchange(0), std::memory_order_relaxed);
}

// Other threads' first spans wait for the one that starts the session, so that
// none of them is lost; a handler inside the starting thread cannot, and after
// kStartWaitNs the others do not either: those spans are counted.
void wait_for_starter(uint32_t self) {
  const int64_t deadline = monotonic_ns() + kStartWaitNs;
  while (g_wiped.by_itself.load(std::memory_order_acquire) == kStarting) {
    const int64_t left = deadline - monotonic_ns();
    if (left <= 0 || g_wiped.starter.load(std::memory_order_relaxed) == self) {
      g_wiped.lost_while_starting.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    futex_wait_private(g_wiped.by_itself, kStarting, left);
  }
}

void run_starter(uint32_t self) {
  g_wiped.starter.store(self, std::memory_order_relaxed);
  try {
    try_start();
  } catch (const std::bad_alloc&) {
    log_line("SHP_OUTPUT_DIR", "no memory");
  }
  g_wiped.starter.store(0, std::memory_order_relaxed);
  g_wiped.by_itself.store(kTried, std::memory_order_release);
  futex_wake_private(g_wiped.by_itself, INT_MAX);
}

}  // namespace

uint32_t start_by_itself() noexcept {
  uint32_t state = g_wiped.by_itself.load(std::memory_order_acquire);
  if (state == kTried) {
    // The starter may have come to its end since our caller saw no session.
    return recording();
  }
  const int saved = errno;
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  if (state == kNotTried &&
      g_wiped.by_itself.compare_exchange_strong(state, kStarting)) {
    run_starter(self);
  } else {
    wait_for_starter(self);
  }
  errno = saved;
  return recording();
}

}  // namespace shp::recorder
