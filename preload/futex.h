// The few futex calls of the recorder. All keep errno; spurious returns are
// the caller's to expect.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace shp::recorder {

inline void futex_call(std::atomic<uint32_t>& word,
                       int operation,
                       uint32_t value,
                       const timespec* timeout) noexcept {
  const int saved = errno;
  syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
  errno = saved;
}

// Waits while word == seen, `timeout_ns` at most. Shared: the other side is
// another process.
inline void futex_wait_shared(std::atomic<uint32_t>& word,
                              uint32_t seen,
                              int64_t timeout_ns) noexcept {
  const timespec timeout{timeout_ns / 1'000'000'000,
                         timeout_ns % 1'000'000'000};
  futex_call(word, FUTEX_WAIT, seen, &timeout);
}

inline void futex_wake_shared(std::atomic<uint32_t>& word, int count) noexcept {
  futex_call(word, FUTEX_WAKE, static_cast<uint32_t>(count), nullptr);
}

inline void futex_wait_private(std::atomic<uint32_t>& word,
                               uint32_t seen,
                               int64_t timeout_ns) noexcept {
  const timespec timeout{timeout_ns / 1'000'000'000,
                         timeout_ns % 1'000'000'000};
  futex_call(word, FUTEX_WAIT_PRIVATE, seen, &timeout);
}

inline void futex_wake_private(std::atomic<uint32_t>& word,
                               int count) noexcept {
  futex_call(word, FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(count), nullptr);
}

// A lock whose word holds its owner's tid, 0 when free. It lies in memory that
// fork empties, so a child is never born with somebody else's lock held. A
// thread that already owns it (a signal handler inside the holder) is refused.
class ForkSafeLock {
 public:
  explicit ForkSafeLock(std::atomic<uint32_t>& word) noexcept : word_(word) {
    const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
    uint32_t seen = 0;
    while (!word_.compare_exchange_weak(
        seen, self, std::memory_order_acquire, std::memory_order_relaxed)) {
      if (seen == self) {
        return;
      }
      if (seen != 0) {
        futex_wait_private(word_, seen, 2'000'000);
      }
      seen = 0;
    }
    held_ = true;
  }
  ~ForkSafeLock() {
    if (held_) {
      word_.store(0, std::memory_order_release);
      futex_wake_private(word_, 1);
    }
  }
  ForkSafeLock(const ForkSafeLock&) = delete;
  ForkSafeLock& operator=(const ForkSafeLock&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  std::atomic<uint32_t>& word_;
  bool held_ = false;
};

}  // namespace shp::recorder
