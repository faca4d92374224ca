#include "preload/arena_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "common/shm/mapped_fd.h"
#include "preload/futex.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace shp::recorder {
namespace {

constexpr uint64_t kMinMemory = 1U << 20;
constexpr uint32_t kDefaultRings = 4096;
// Blocks that get their memory with the arena (512 KiB), so that a program's
// first 16,000 spans, and a quiet one's all, never wait for a page.
constexpr uint32_t kWarmBlocks = 16;
// From 1 MiB of records on, the daemon is woken: it then keeps up inside few
// blocks, which stay in the caches.
constexpr uint32_t kWakeBlocks = 32;

constexpr uint64_t align_page(uint64_t bytes) {
  return (bytes + kPageBytes - 1) & ~uint64_t{kPageBytes - 1};
}

// Everything but the blocks shrinks with them, since address space may be what
// is short (RLIMIT_AS); at the full size it is virtual and costs nothing.
ArenaGeometry plan(uint64_t memory_bytes, unsigned halvings) {
  ArenaGeometry g{};
  g.block_count = static_cast<uint32_t>(
      std::min<uint64_t>(memory_bytes / kBlockBytes, kMaxBlocks));
  g.max_rings = std::max(kDefaultRings >> halvings, 64U);
  g.name_capacity = std::max(kMaxNames >> halvings, 4096U);
  g.name_bytes_capacity = std::max(kMaxNameTableBytes >> halvings, 1U << 19);
  g.rings_offset = kDaemonAreaOffset + kDaemonAreaBytes;
  g.states_offset = g.rings_offset + uint64_t{g.max_rings} * kPageBytes;
  g.names_offset =
      g.states_offset + align_page(uint64_t{g.block_count} * sizeof(uint32_t));
  g.name_bytes_offset = g.names_offset + align_page(uint64_t{g.name_capacity} *
                                                    sizeof(NameEntry));
  g.blocks_offset = g.name_bytes_offset + align_page(g.name_bytes_capacity);
  g.arena_bytes =
      g.blocks_offset + uint64_t{g.block_count} * uint64_t{kBlockBytes};
  return g;
}

// ftruncate past RLIMIT_FSIZE raises SIGXFSZ, which would end the program.
bool file_size_allowed(uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
         limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

UniqueFd make_memfd(uint64_t bytes) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(memfd_create("shp-arena", flags | MFD_NOEXEC_SEAL));
  if (!fd) {
    fd.reset(memfd_create("shp-arena", flags));  // before Linux 6.3
  }
  if (!fd) {
    return fd;
  }
  if (!file_size_allowed(bytes)) {
    errno = EFBIG;
    return UniqueFd();
  }
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0) {
    return UniqueFd();
  }
  return fd;
}

void fill_header(ArenaHeader& header, const ArenaGeometry& geometry) {
  header.magic = kArenaMagic;
  header.abi_version = kAbiVersion;
  header.header_bytes = sizeof(ArenaHeader);
  header.clock_kind = static_cast<uint32_t>(best_clock_kind());
  header.client_pid = static_cast<uint32_t>(getpid());
  if (getrandom(header.token, sizeof(header.token), GRND_NONBLOCK) !=
      static_cast<ssize_t>(sizeof(header.token))) {
    const int64_t now = monotonic_ns();
    std::memcpy(header.token, &now, sizeof(now));
  }
  header.geometry = geometry;
}

bool map_arena(UniqueFd fd, const ArenaGeometry& g, ClientArena& out) {
  MappedFd mapping = MappedFd::map(fd.get(), g.arena_bytes);
  std::byte* base = mapping.data();
  if (base == nullptr) {
    return false;
  }
  madvise(base, g.arena_bytes, MADV_DONTDUMP);
  auto* header = reinterpret_cast<ArenaHeader*>(base);
  if (!populate(header, kPageBytes) ||
      !populate(base + g.states_offset, g.names_offset - g.states_offset)) {
    return false;
  }
  fill_header(*header, g);
  out.header = header;
  out.rings = reinterpret_cast<RingHeader*>(base + g.rings_offset);
  out.names = reinterpret_cast<NameEntry*>(base + g.names_offset);
  out.name_bytes = reinterpret_cast<char*>(base + g.name_bytes_offset);
  out.geometry = g;
  out.pool.header = header;
  out.pool.states =
      reinterpret_cast<std::atomic<uint32_t>*>(base + g.states_offset);
  out.pool.blocks = base + g.blocks_offset;
  out.pool.count = g.block_count;
  out.pool.claimable.store(g.block_count, std::memory_order_relaxed);
  out.pool.wake_level = std::clamp(g.block_count / 8, 2U, kWakeBlocks);
  out.memfd = std::move(fd);
  out.mapping = std::move(mapping);
  return true;
}

}  // namespace

bool populate(void* at, uint64_t bytes) noexcept {
  const int saved = errno;
  auto first = reinterpret_cast<uintptr_t>(at) & ~uintptr_t{kPageBytes - 1};
  const uintptr_t last = reinterpret_cast<uintptr_t>(at) + bytes;
  // EINVAL: a kernel before 5.14. Its pages then come at first touch, as any
  // shared memory's do.
  const bool done = madvise(reinterpret_cast<void*>(first),
                            align_page(last - first),
                            MADV_POPULATE_WRITE) == 0 ||
                    errno == EINVAL;
  errno = saved;
  return done;
}

bool create_arena(uint64_t memory_bytes, ClientArena& out) noexcept {
  uint64_t memory = std::max(memory_bytes, kMinMemory);
  for (unsigned halvings = 0; memory >= kMinMemory; ++halvings, memory /= 2) {
    const ArenaGeometry geometry = plan(memory, halvings);
    UniqueFd fd = make_memfd(geometry.arena_bytes);
    auto* populated =
        static_cast<uint8_t*>(mmap(nullptr,
                                   geometry.block_count,
                                   PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                   -1,
                                   0));
    if (fd && populated != MAP_FAILED &&
        map_arena(std::move(fd), geometry, out)) {
      out.pool.populated = populated;
      out.pool.warm_up(std::min(kWarmBlocks, geometry.block_count / 2));
      return true;
    }
    if (populated != MAP_FAILED) {
      munmap(populated, geometry.block_count);
    }
  }
  return false;
}

// The hint starts the search where the daemon freed last, so a quiet program
// goes round in a few warm blocks. `blocks_used` saves a full pool's writers
// from searching it all for every span that they drop. The daemon may count a
// block down before its claim counts it up, so it is below zero at times.
uint32_t BlockPool::try_claim(uint32_t ring) noexcept {
  const uint32_t limit = claimable.load(std::memory_order_relaxed);
  const auto used =
      static_cast<int32_t>(header->blocks_used.load(std::memory_order_relaxed));
  if (used >= static_cast<int32_t>(limit)) {
    return kNoBlock;
  }
  const uint32_t hint = header->free_hint.load(std::memory_order_relaxed);
  uint32_t index = hint < count ? hint : 0;
  for (uint32_t i = 0; i < count;
       ++i, index = index + 1 == count ? 0 : index + 1) {
    uint32_t expected = 0;
    if (states[index].load(std::memory_order_relaxed) != 0 ||
        (limit < count && populated[index] == 0) ||
        !states[index].compare_exchange_strong(expected,
                                               ring + 1,
                                               std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
      continue;
    }
    if (populated[index] == 0) {
      if (!populate(block(index), kBytes)) {
        stop_growing(index);
        continue;
      }
      populated[index] = 1;
      populated_count.fetch_add(1, std::memory_order_relaxed);
    }
    header->free_hint.store(index + 1, std::memory_order_relaxed);
    return index;
  }
  return kNoBlock;
}

void BlockPool::warm_up(uint32_t blocks_to_populate) noexcept {
  if (populate(block(0), uint64_t{blocks_to_populate} * kBytes)) {
    std::memset(populated, 1, blocks_to_populate);
    populated_count.store(blocks_to_populate, std::memory_order_relaxed);
  }
}

// No memory for one more block: from here on only those that already have
// theirs are used.
void BlockPool::stop_growing(uint32_t index) noexcept {
  states[index].store(0, std::memory_order_release);
  claimable.store(populated_count.load(std::memory_order_relaxed),
                  std::memory_order_relaxed);
}

uint32_t BlockPool::claim(uint32_t ring) noexcept {
  uint32_t index = try_claim(ring);
  if (index == kNoBlock) [[unlikely]] {
    wake_daemon();
    if (wait_ns > 0) {
      index = wait_for_room(ring);
    }
    if (index == kNoBlock) {
      return kNoBlock;
    }
  }
  const auto used = static_cast<int32_t>(
      header->blocks_used.fetch_add(1, std::memory_order_relaxed) + 1);
  if (used >= static_cast<int32_t>(wake_level)) {
    wake_daemon();
  }
  return index;
}

uint32_t BlockPool::wait_for_room(uint32_t ring) noexcept {
  const int64_t deadline = monotonic_ns() + wait_ns;
  header->room_waiters.fetch_add(1, std::memory_order_seq_cst);
  uint32_t index = kNoBlock;
  for (;;) {
    const uint32_t seen = header->room.load(std::memory_order_acquire);
    index = try_claim(ring);
    const int64_t left = deadline - monotonic_ns();
    if (index != kNoBlock || left <= 0) {
      break;
    }
    futex_wait_shared(header->room, seen, left);
  }
  header->room_waiters.fetch_sub(1, std::memory_order_relaxed);
  return index;
}

// One system call a sleep of the daemon's, however many blocks fill meanwhile.
void BlockPool::wake_daemon() noexcept {
  header->wake.fetch_add(1, std::memory_order_seq_cst);
  if (header->daemon_sleeps.load(std::memory_order_relaxed) != 0 &&
      header->daemon_sleeps.exchange(0, std::memory_order_seq_cst) != 0) {
    futex_wake_shared(header->wake, 1);
  }
}

}  // namespace shp::recorder
