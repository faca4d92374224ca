// The producing end of a ring, read back by hand: block by block, as the
// picture in arena_abi.h says.

#include "common/shm/ring_writer.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <vector>

namespace {

// Blocks of 256 bytes: a header and six records. Hands out 0, 1, 2 … and what
// was given back.
template <uint32_t Bytes, uint32_t Count>
class TinyPool {
 public:
  static constexpr uint32_t kBytes = Bytes;

  uint32_t claim(uint32_t ring) noexcept {
    for (uint32_t i = 0; i < Count; ++i) {
      if (owner[i] == 0) {
        owner[i] = ring + 1;
        return i;
      }
    }
    return shp::kNoBlock;
  }
  std::byte* block(uint32_t index) noexcept {
    return reinterpret_cast<std::byte*>(memory.data()) + index * Bytes;
  }

  std::array<uint32_t, Count> owner{};
  alignas(64) std::array<uint64_t, Bytes / 8 * Count> memory{};
};

using Pool = TinyPool<256, 3>;

bool write_span(shp::RingWriter<Pool>& writer, uint64_t id) {
  shp::Record* record = writer.reserve(1);
  if (record == nullptr) {
    return false;
  }
  *record = shp::Record{shp::kSpan, 0, 1, 7, id * 10, id * 10 + 5, id};
  writer.publish(1);
  return true;
}

const shp::BlockHeader& header_of(Pool& pool, uint32_t block) {
  return *reinterpret_cast<const shp::BlockHeader*>(pool.block(block));
}

uint64_t id_at(Pool& pool, uint32_t block, uint32_t offset) {
  return reinterpret_cast<const shp::Record*>(pool.block(block) + offset)->id;
}

struct Fixture {
  Pool pool;
  std::unique_ptr<shp::RingHeader> ring = std::make_unique<shp::RingHeader>();
  shp::RingWriter<Pool> writer;
  bool opened = writer.open(pool, *ring, 4);
};

}  // namespace

TEST_CASE(
    "an opened ring names its first block and is empty behind the header") {
  Fixture f;
  REQUIRE(f.opened);
  CHECK(f.ring->first_block.load() == 0);
  CHECK(f.ring->tail.load() == shp::position_of(0, 64));
  CHECK(header_of(f.pool, 0).ring == 4);
  CHECK(header_of(f.pool, 0).sequence == 0);
  CHECK(header_of(f.pool, 0).next.load() == shp::kNoBlock);
}

TEST_CASE("a record is where the tail was, and the tail is behind it") {
  Fixture f;
  REQUIRE(write_span(f.writer, 1));
  CHECK(id_at(f.pool, 0, 64) == 1);
  CHECK(f.ring->tail.load() == shp::position_of(0, 96));
}

TEST_CASE("nothing is published by a reserve alone") {
  Fixture f;
  REQUIRE(f.writer.reserve(2) != nullptr);
  CHECK(f.ring->tail.load() == shp::position_of(0, 64));
}

TEST_CASE("the seventh record goes to a new block that the first links to") {
  Fixture f;
  for (uint64_t id = 1; id <= 7; ++id) {
    REQUIRE(write_span(f.writer, id));
  }
  CHECK(header_of(f.pool, 0).used.load() == 256);
  CHECK(header_of(f.pool, 0).next.load() == 1);
  CHECK(header_of(f.pool, 1).sequence == 1);
  CHECK(id_at(f.pool, 0, 224) == 6);
  CHECK(id_at(f.pool, 1, 64) == 7);
  CHECK(f.ring->tail.load() == shp::position_of(1, 96));
}

TEST_CASE("a record that does not fit leaves the rest of its block unused") {
  Fixture f;
  for (uint64_t id = 1; id <= 5; ++id) {
    REQUIRE(write_span(f.writer, id));
  }
  REQUIRE(f.writer.reserve(3) != nullptr);
  f.writer.publish(3);
  CHECK(header_of(f.pool, 0).used.load() == 224);
  CHECK(f.ring->tail.load() == shp::position_of(1, 160));
}

TEST_CASE("an empty pool refuses, and a block given back is used again") {
  Fixture f;
  uint64_t id = 1;
  while (write_span(f.writer, id)) {
    ++id;
  }
  CHECK(id == 19);  // three blocks of six
  CHECK(f.ring->tail.load() == shp::position_of(2, 256));
  CHECK_FALSE(write_span(f.writer, 19));
  f.pool.owner[0] = 0;
  REQUIRE(write_span(f.writer, 19));
  CHECK(header_of(f.pool, 0).sequence == 3);
  CHECK(header_of(f.pool, 2).next.load() == 0);
  CHECK(id_at(f.pool, 0, 64) == 19);
}

TEST_CASE("a pool without any block leaves the ring closed") {
  Pool pool;
  pool.owner.fill(9);
  auto ring = std::make_unique<shp::RingHeader>();
  shp::RingWriter<Pool> writer;
  CHECK_FALSE(writer.open(pool, *ring, 0));
  CHECK(ring->tail.load() == 0);
}
