// ArenaView: the reader's sight of one arena (arena_abi.h) behind a descriptor
// that came from a client. Used by a session's thread in shpd.
//
// Only what must be shared word by word is mapped: header, rings and block
// states. Names and blocks are copied out with pread(), so that a client cannot
// change bytes between their check and their use, that a hole in the file is
// read as zeros and never faults, and that the daemon's memory does not grow
// with the arena. Seals keep the file from shrinking under the mapping. The
// geometry is copied and checked once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/shm/arena_abi.h"
#include "common/shm/mapped_fd.h"

namespace shp {

// Every part aligned, in the order of arena_abi.h's picture, apart from the
// others, within the limits and within `file_bytes`. Pure.
[[nodiscard]] Status check_geometry(const ArenaGeometry& geometry,
                                    uint64_t file_bytes);

class ArenaView {
 public:
  static constexpr uint32_t kBlockSize = kBlockBytes;

  // Takes an arena that nobody vouches for. Fails with one line that says what
  // is wrong with it; errno_value EPROTO when it is of another ABI version.
  [[nodiscard]] static Result<ArenaView> open(UniqueFd fd);

  ArenaHeader& header() const;
  std::byte* daemon_area() const;
  const ArenaGeometry& geometry() const { return geometry_; }
  const uint8_t* token() const { return token_; }
  ClockKind clock_kind() const { return clock_kind_; }
  int fd() const { return fd_.get(); }

  // Rings that may hold something, never more than there are.
  uint32_t rings_in_use() const;
  // `index` < geometry().max_rings.
  RingHeader& ring(uint32_t index) const;
  // Whether the ring's page exists: looking at one that does not would make it.
  bool ring_exists(uint32_t index) const;

  // ---- what RingReader needs ----------------------------------------------
  uint32_t block_count() const { return geometry_.block_count; }
  bool owns(uint32_t ring, uint32_t block) const;
  bool read_block(uint32_t block,
                  uint32_t offset,
                  void* to,
                  uint32_t bytes) const;

  // A block that the next commit leaves behind, and, after that commit, back to
  // the pool; neither does anything to a block that is not the ring's.
  void mark_left(uint32_t ring, uint32_t block) const;
  void free_block(uint32_t ring, uint32_t block) const;
  // What an earlier daemon died over: blocks marked left, of rings `known`, are
  // freed when they stand before the block of that ring's `sequence_of`, and
  // are the ring's again when not. Counts the used blocks anew.
  void mend_blocks_left(const std::vector<uint32_t>& sequence_of,
                        const std::vector<bool>& known) const;

  // ---- what NameReader needs ----------------------------------------------
  uint32_t names_published() const;
  // Entry of name `id` (from 1); false when there is none.
  bool read_name_entry(uint32_t id, NameEntry* to) const;
  bool read_name_bytes(const NameEntry& entry, char* to) const;

 private:
  bool read_at(uint64_t offset, void* to, size_t bytes) const;
  std::atomic<uint32_t>& state(uint32_t block) const;

  UniqueFd fd_;
  MappedFd map_;
  ArenaGeometry geometry_{};
  uint8_t token_[16] = {};
  ClockKind clock_kind_ = ClockKind::kMonotonic;
};

}  // namespace shp
