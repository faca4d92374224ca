// A ring over blocks of 256 bytes (six units of 32 behind the header) in plain
// memory, for tests and the fuzzer of RingReader.
#pragma once

#include <cstring>
#include <vector>

#include "common/shm/arena_abi.h"

namespace shp::test {

struct TinySource {
  static constexpr uint32_t kBlockSize = 256;

  explicit TinySource(uint32_t count)
      : owner(count, 0), bytes(count * kBlockSize) {}

  uint32_t block_count() const { return static_cast<uint32_t>(owner.size()); }
  bool owns(uint32_t ring, uint32_t block) const {
    return owner[block] == ring + 1;
  }
  bool read_block(uint32_t block, uint32_t offset, void* to, uint32_t n) const {
    const size_t from = size_t{block} * kBlockSize + offset;
    if (block >= owner.size() || offset + n > kBlockSize) {
      return false;
    }
    std::memcpy(to, bytes.data() + from, n);
    return true;
  }

  template <typename T>
  void put(uint32_t block, uint32_t offset, const T& value) {
    std::memcpy(bytes.data() + size_t{block} * kBlockSize + offset,
                &value,
                sizeof(value));
  }
  // A block of ring 0 with `used` and `next` as given.
  void header(uint32_t block, uint32_t sequence, uint32_t used, uint32_t next) {
    owner[block] = 1;
    put(block, 0, uint32_t{0});
    put(block, 4, sequence);
    put(block, 8, used);
    put(block, 12, next);
  }

  std::vector<uint32_t> owner;
  std::vector<unsigned char> bytes;
};

}  // namespace shp::test
