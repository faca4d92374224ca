#include "preload/process_arena.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "preload/fork_wipe.h"
#include "preload/names.h"
#include "preload/recorder.h"

namespace shp::recorder {
namespace {

constexpr uint64_t kDefaultMemory = 256U << 20;
constexpr int kHighFd = 500;

uint64_t memory_budget() {
  const char* text = std::getenv("SHP_MEMORY");  // MiB
  if (text == nullptr) {
    return kDefaultMemory;
  }
  const unsigned long long mib = std::strtoull(text, nullptr, 10);
  return std::clamp(mib, 1ULL, 4096ULL) << 20;
}

// "wait:MS": how long a span call may wait for room, 1 s at most.
int64_t full_wait_ns() {
  const char* text = std::getenv("SHP_FULL");
  if (text == nullptr || std::strncmp(text, "wait", 4) != 0) {
    return 0;
  }
  const long ms = text[4] == ':' ? std::strtol(text + 5, nullptr, 10) : 100;
  return std::clamp(ms, 1L, 1000L) * 1'000'000;
}

}  // namespace

UniqueFd move_high(UniqueFd fd) {
  const int high = fcntl(fd.get(), F_DUPFD_CLOEXEC, kHighFd);
  return high >= 0 ? UniqueFd(high) : std::move(fd);
}

// The arena of a parent that forked us is left mapped: we may be a vfork's
// child, and it costs nothing.
Status ensure_arena() {
  if (g_wiped.gate.load(std::memory_order_relaxed) != nullptr) {
    return {};
  }
  if (!wipe_on_fork() || !watch_thread_exits()) {
    return errno_error("preparing to record", errno);
  }
  auto* arena = new ClientArena();
  if (!create_arena(memory_budget(), *arena)) {
    const int why = errno;
    delete arena;
    return errno_error("cannot make shared memory for spans", why);
  }
  arena->memfd = move_high(std::move(arena->memfd));
  arena->pool.wait_ns = full_wait_ns();
  g_process.arena = arena;
  g_process.next_ring.store(0, std::memory_order_relaxed);
  ++g_process.serial;
  if (!attach_names(*arena)) {
    return error("no memory for span names");
  }
  g_wiped.gate.store(&arena->header->gate, std::memory_order_release);
  return {};
}

}  // namespace shp::recorder
