// Waiting and waking on a word that two processes share. Spurious returns and
// returns for signals are the caller's to expect.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace shp {

// Waits while `word` is `seen`, at most `timeout_ns`. Not FUTEX_PRIVATE: the
// key is the page of the shared file.
inline void futex_wait(std::atomic<uint32_t>* word,
                       uint32_t seen,
                       int64_t timeout_ns) {
  const timespec timeout{timeout_ns / 1'000'000'000,
                         timeout_ns % 1'000'000'000};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

inline void futex_wake_all(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace shp
