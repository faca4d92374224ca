#include "preload/fork_wipe.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "preload/recorder.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace shp::recorder {
namespace {

// Without MADV_WIPEONFORK (a kernel before 4.14, gVisor) this handler does its
// work; zero bytes in atomics are what the kernel's wiping amounts to.
void forget_in_child() {
  std::memset(static_cast<void*>(&g_wiped), 0, sizeof(g_wiped));
}

}  // namespace

bool wipe_on_fork() noexcept {
  // A child inherits both: the mapping's advice and the handler.
  static constinit std::atomic<bool> armed{false};
  if (!armed.load(std::memory_order_acquire)) {
    armed.store(madvise(&g_wiped, sizeof(g_wiped), MADV_WIPEONFORK) == 0 ||
                    pthread_atfork(nullptr, nullptr, forget_in_child) == 0,
                std::memory_order_release);
  }
  return armed.load(std::memory_order_relaxed);
}

}  // namespace shp::recorder
