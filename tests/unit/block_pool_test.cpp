// The client's pool of blocks, in an arena of its own making.
#include <doctest/doctest.h>

#include "preload/arena_client.h"

namespace shp::recorder {
namespace {

constexpr uint32_t kRing = 2;

struct Fixture {
  ClientArena arena;
  bool made = create_arena(1 << 20, arena);
};

TEST_CASE("a claimed block is its ring's and counted") {
  Fixture f;
  REQUIRE(f.made);
  const uint32_t block = f.arena.pool.claim(kRing);
  REQUIRE(block < f.arena.pool.count);
  CHECK(f.arena.pool.states[block].load() == kRing + 1);
  CHECK(f.arena.header->blocks_used.load() == 1);
}

TEST_CASE("a full pool gives none, and the first block that is freed next") {
  Fixture f;
  REQUIRE(f.made);
  for (uint32_t i = 0; i < f.arena.pool.count; ++i) {
    REQUIRE(f.arena.pool.claim(kRing) != kNoBlock);
  }
  CHECK(f.arena.pool.claim(kRing) == kNoBlock);
  f.arena.pool.states[5].store(0);
  f.arena.header->blocks_used.fetch_sub(1);
  CHECK(f.arena.pool.claim(kRing) == 5);
}

// Seen to fail while the count was read as unsigned: all spans were lost until
// the next claim was counted, which none was.
TEST_CASE("a count below zero is no full pool") {
  Fixture f;
  REQUIRE(f.made);
  f.arena.header->blocks_used.fetch_sub(1);
  CHECK(f.arena.pool.claim(kRing) != kNoBlock);
  CHECK(f.arena.header->blocks_used.load() == 0);
}

}  // namespace
}  // namespace shp::recorder
