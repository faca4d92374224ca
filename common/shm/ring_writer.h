// RingWriter: the producing end of one ring (arena_abi.h). One object a thread,
// used by that thread alone; nothing here allocates, locks or calls the kernel
// but `next_block`, which runs once a block.
//
// Use: reserve(units), fill the record, publish(units). A reserve that returns
// nullptr found no free block; the caller counts the loss.
//
// Templated on the pool so that tests can run it over blocks of a few records
// and a pool that runs dry (tests/unit/ring_test.cpp).
#pragma once

#include <cstring>

#include "common/shm/arena_abi.h"

namespace shp {

// What a pool must offer:
//   static constexpr uint32_t kBytes;            bytes of a block
//   uint32_t claim(uint32_t ring) noexcept;      block index or kNoBlock; the
//                                                block is populated and owned
//   std::byte* block(uint32_t index) noexcept;   its kBytes bytes
template <typename Pool>
class RingWriter {
 public:
  static constexpr uint32_t kPrefetchBytes = 512;

  RingWriter() = default;

  // Takes the ring's first block and makes the ring readable. False when the
  // pool has none: then the writer stays closed.
  bool open(Pool& pool, RingHeader& ring, uint32_t ring_index) noexcept {
    pool_ = &pool;
    ring_ = &ring;
    ring_index_ = ring_index;
    const uint32_t first = pool.claim(ring_index);
    if (first == kNoBlock) {
      return false;
    }
    begin_block(first, 0);
    ring.first_block.store(first, std::memory_order_relaxed);
    ring.tail.store(position_, std::memory_order_release);
    return true;
  }

  // Room for `units` * 32 bytes inside one block, or nullptr when the pool is
  // empty. 1 <= units <= (Pool::kBytes - 64) / 32.
  Record* reserve(uint32_t units) noexcept {
    if (end_ - cursor_ < static_cast<std::ptrdiff_t>(units * kRecordBytes))
        [[unlikely]] {
      if (!next_block()) {
        return nullptr;
      }
    }
    return reinterpret_cast<Record*>(cursor_);
  }

  // Makes the reserved bytes visible to the reader.
  void publish(uint32_t units) noexcept {
    cursor_ += units * kRecordBytes;
    // The daemon has read these lines: asking for them before they are stored
    // to hides the trip to its cache. Past the block's end it asks in vain.
    prefetch_for_store(cursor_ + kPrefetchBytes);
    position_ += units * kRecordBytes;
    ring_->tail.store(position_, std::memory_order_release);
  }

  RingHeader& ring() noexcept { return *ring_; }
  uint32_t ring_index() const noexcept { return ring_index_; }

 private:
  // The compiler's own prefetch for writing is one for reading unless it is
  // told of a newer CPU; where prefetchw is unknown it does nothing.
  static void prefetch_for_store(const std::byte* at) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
  }

  void begin_block(uint32_t index, uint32_t sequence) noexcept {
    block_ = pool_->block(index);
    auto* header = reinterpret_cast<BlockHeader*>(block_);
    header->ring = ring_index_;
    header->sequence = sequence;
    header->used.store(0, std::memory_order_relaxed);
    header->next.store(kNoBlock, std::memory_order_relaxed);
    cursor_ = block_ + sizeof(BlockHeader);
    end_ = block_ + Pool::kBytes;
    position_ = position_of(index, sizeof(BlockHeader));
  }

  // Kept out of line: once in a thousand spans, and it must not cost the
  // others their registers.
  [[gnu::noinline, gnu::cold]] bool next_block() noexcept {
    const uint32_t index = pool_->claim(ring_index_);
    if (index == kNoBlock) {
      return false;
    }
    auto* old = reinterpret_cast<BlockHeader*>(block_);
    const uint32_t sequence = old->sequence + 1;
    old->used.store(position_offset(position_), std::memory_order_relaxed);
    begin_block(index, sequence);
    // The reader leaves `old` only by this link, so it is set last; the new
    // tail follows with the first record's publish.
    old->next.store(index, std::memory_order_release);
    ring_->tail.store(position_, std::memory_order_release);
    return true;
  }

  std::byte* cursor_ = nullptr;
  std::byte* end_ = nullptr;
  uint64_t position_ = 0;
  RingHeader* ring_ = nullptr;
  std::byte* block_ = nullptr;
  Pool* pool_ = nullptr;
  uint32_t ring_index_ = 0;
};

}  // namespace shp
