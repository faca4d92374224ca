// ClientArena and BlockPool: the client's side of an arena: making it, and
// taking blocks from its pool. arena_client.cpp is preload's only use of
// Boost.Interprocess.
//
// One arena a process for its whole life (a forked child makes its own). The
// mapping is never unmapped while any thread may still write to it.
#pragma once

#include <cstdint>

#include "common/base/unique_fd.h"
#include "common/shm/arena_abi.h"
#include "common/shm/mapped_fd.h"

namespace shp::recorder {

// Takes and populates blocks. Any thread; lock-free; keeps errno. Blocks go
// back to the pool by the daemon's store to `states`.
class BlockPool {
 public:
  static constexpr uint32_t kBytes = kBlockBytes;

  uint32_t claim(uint32_t ring) noexcept;
  std::byte* block(uint32_t index) noexcept {
    return blocks + uint64_t{index} * kBytes;
  }

  ArenaHeader* header = nullptr;
  std::atomic<uint32_t>* states = nullptr;
  std::byte* blocks = nullptr;
  uint32_t count = 0;
  uint32_t wake_level = 0;  // blocks in use from which the daemon is woken
  int64_t wait_ns = 0;      // SHP_FULL=wait:MS: how long a full pool may block
  uint8_t* populated = nullptr;  // one byte a block, private
  std::atomic<uint32_t> populated_count{0};
  // Blocks that may be in use at once: all, or after a lack of memory those
  // that have theirs.
  std::atomic<uint32_t> claimable{0};

  void wake_daemon() noexcept;
  // Populates the first blocks while nobody waits; failing is no matter.
  void warm_up(uint32_t blocks_to_populate) noexcept;

 private:
  uint32_t try_claim(uint32_t ring) noexcept;
  uint32_t wait_for_room(uint32_t ring) noexcept;
  void stop_growing(uint32_t index) noexcept;
};

struct ClientArena {
  ArenaHeader* header = nullptr;
  RingHeader* rings = nullptr;
  NameEntry* names = nullptr;
  char* name_bytes = nullptr;
  ArenaGeometry geometry{};
  BlockPool pool;
  UniqueFd memfd;
  MappedFd mapping;
};

// Makes and maps an arena whose blocks may hold up to `memory_bytes`; halves
// that until limits (RLIMIT_AS, RLIMIT_FSIZE, memory) let it be. Returns false
// with errno set when not even the smallest works.
bool create_arena(uint64_t memory_bytes, ClientArena& out) noexcept;

// Populates [at, at+bytes) of the arena: afterwards touching it cannot fault
// for want of memory. Keeps errno.
bool populate(void* at, uint64_t bytes) noexcept;

}  // namespace shp::recorder
