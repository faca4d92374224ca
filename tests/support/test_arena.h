// TestArena: an arena made by hand from arena_abi.h, without a line of the
// recorder's code, for tests and benches of the reading side. Every byte can be
// put wrong on purpose: the structs are there to be written to.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/unique_fd.h"
#include "common/shm/arena_abi.h"

namespace shp::test {

struct ArenaPlan {
  uint32_t rings = 4;
  uint32_t blocks = 16;
  uint32_t names = 64;
  uint32_t name_bytes = 4096;
  ClockKind clock = ClockKind::kMonotonic;
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
};

class TestArena {
 public:
  explicit TestArena(const ArenaPlan& plan = {}) {
    ArenaGeometry g{};
    g.max_rings = plan.rings;
    g.block_count = plan.blocks;
    g.name_capacity = plan.names;
    g.name_bytes_capacity = plan.name_bytes;
    g.rings_offset = 4096 + 65536;
    g.states_offset = g.rings_offset + plan.rings * 4096ULL;
    g.names_offset = page(g.states_offset + plan.blocks * 4ULL);
    g.name_bytes_offset = page(g.names_offset + plan.names * 8ULL);
    g.blocks_offset = page(g.name_bytes_offset + plan.name_bytes);
    g.arena_bytes = g.blocks_offset + plan.blocks * 32768ULL;
    fd_.reset(memfd_create("test-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    SHP_CHECK(fd_ &&
              ftruncate(fd_.get(), static_cast<off_t>(g.arena_bytes)) == 0);
    base_ = static_cast<char*>(mmap(nullptr,
                                    g.arena_bytes,
                                    PROT_READ | PROT_WRITE,
                                    MAP_SHARED,
                                    fd_.get(),
                                    0));
    SHP_CHECK(base_ != MAP_FAILED);
    SHP_CHECK(fcntl(fd_.get(), F_ADD_SEALS, plan.seals) == 0);
    ArenaHeader& h = header();
    h.magic = 0x3141'4e45'5241'5048;
    h.abi_version = 1;
    h.header_bytes = 4096;
    h.clock_kind = static_cast<uint32_t>(plan.clock);
    h.client_pid = static_cast<uint32_t>(getpid());
    std::memcpy(h.token, "0123456789abcdef", 16);
    h.geometry = g;
  }
  ~TestArena() { munmap(base_, header().geometry.arena_bytes); }
  TestArena(const TestArena&) = delete;
  TestArena& operator=(const TestArena&) = delete;

  UniqueFd fd() const { return UniqueFd(dup(fd_.get())); }
  ArenaHeader& header() { return *at<ArenaHeader>(0); }
  RingHeader& ring(uint32_t i) {
    return at<RingHeader>(header().geometry.rings_offset)[i];
  }
  std::atomic<uint32_t>& state(uint32_t block) {
    return at<std::atomic<uint32_t>>(header().geometry.states_offset)[block];
  }
  BlockHeader& block(uint32_t i) { return *at<BlockHeader>(block_offset(i)); }
  char* block_bytes(uint32_t i) { return at<char>(block_offset(i)); }
  NameEntry& name_entry(uint32_t id) {
    return at<NameEntry>(header().geometry.names_offset)[id - 1];
  }
  char* name_bytes() { return at<char>(header().geometry.name_bytes_offset); }

  uint32_t add_name(std::string_view name) {
    ArenaHeader& h = header();
    const uint32_t used = h.name_bytes_used;
    std::memcpy(name_bytes() + used, name.data(), name.size());
    h.name_bytes_used = used + static_cast<uint32_t>(name.size());
    const uint32_t id = h.names_count + 1;
    name_entry(id) = {used, static_cast<uint32_t>(name.size())};
    h.names_count = id;
    return id;
  }

 private:
  static uint64_t page(uint64_t bytes) { return (bytes + 4095) & ~4095ULL; }
  uint64_t block_offset(uint32_t i) {
    return header().geometry.blocks_offset + i * 32768ULL;
  }
  template <typename T>
  T* at(uint64_t offset) {
    return reinterpret_cast<T*>(base_ + offset);
  }

  UniqueFd fd_;
  char* base_ = nullptr;
};

// A thread's hand on a ring of a TestArena. Takes the lowest free block.
class TestRing {
 public:
  TestRing(TestArena& arena, uint32_t index, uint32_t tid = 100)
      : arena_(arena), index_(index) {
    RingHeader& ring = arena_.ring(index);
    ring.state = kClaimed;
    ring.tid = tid;
    std::memcpy(ring.thread_name, "worker", 7);
    if (arena_.header().rings_high <= index) {
      arena_.header().rings_high = index + 1;
    }
    begin(take_block(), 0);
    ring.first_block = block_;
    ring.tail = position_of(block_, offset_);
  }

  uint64_t tail() const { return position_of(block_, offset_); }
  uint32_t block() const { return block_; }

  // False when no block is free.
  bool record(uint8_t kind,
              uint8_t flags,
              uint32_t name,
              uint64_t start,
              uint64_t end,
              uint64_t id,
              std::string_view payload = {}) {
    const auto units = static_cast<uint32_t>(1 + (payload.size() + 31) / 32);
    if (offset_ + units * 32 > 32768 && !next_block()) {
      return false;
    }
    char* at = arena_.block_bytes(block_) + offset_;
    const Record head{
        kind, flags, static_cast<uint16_t>(units), name, start, end, id};
    std::memcpy(at, &head, sizeof(head));
    std::memcpy(at + sizeof(head), payload.data(), payload.size());
    offset_ += units * 32;
    arena_.ring(index_).tail.store(tail(), std::memory_order_release);
    return true;
  }
  bool session(uint32_t generation) {
    arena_.ring(index_).session = generation;
    return record(kSession, 0, generation, 0, 0, 0);
  }
  bool span(uint32_t name, uint64_t start, uint64_t end, uint64_t id = 1) {
    return record(kSpan, 0, name, start, end, id);
  }
  void open_slot(uint32_t slot, uint32_t name, uint64_t start, uint64_t id) {
    OpenSlot& open = arena_.ring(index_).open[slot];
    open.name = name;
    open.start_ticks = start;
    open.id = id;
  }
  void release() { arena_.ring(index_).state = kReleased; }

 private:
  uint32_t take_block() {
    for (uint32_t i = 0; i < arena_.header().geometry.block_count; ++i) {
      if (arena_.state(i) == 0) {
        arena_.state(i) = index_ + 1;
        arena_.header().blocks_used++;
        return i;
      }
    }
    return kNoBlock;
  }
  void begin(uint32_t block, uint32_t sequence) {
    SHP_CHECK(block != kNoBlock);
    block_ = block;
    sequence_ = sequence;
    offset_ = 64;
    BlockHeader& header = arena_.block(block);
    header.ring = index_;
    header.sequence = sequence;
    header.used = 0;
    header.next = kNoBlock;
  }
  bool next_block() {
    const uint32_t next = take_block();
    if (next == kNoBlock) {
      return false;
    }
    BlockHeader& old = arena_.block(block_);
    old.used = offset_;
    begin(next, sequence_ + 1);
    old.next.store(next, std::memory_order_release);
    return true;
  }

  TestArena& arena_;
  uint32_t index_;
  uint32_t block_ = 0;
  uint32_t sequence_ = 0;
  uint32_t offset_ = 64;
};

// The payload of kHasArgs: u32 count, text.
inline std::string counted(std::string_view text) {
  const auto count = static_cast<uint32_t>(text.size());
  std::string out(reinterpret_cast<const char*>(&count), sizeof(count));
  return out.append(text);
}
inline std::string key_bytes(uint64_t key) {
  return std::string(reinterpret_cast<const char*>(&key), sizeof(key));
}

}  // namespace shp::test
