#include "common/shm/arena_view.h"

#include <doctest/doctest.h>

#include <string>

#include "common/shm/name_reader.h"
#include "tests/support/test_arena.h"

namespace shp {
namespace {

using test::TestArena;

std::string why_not(TestArena& arena) {
  const Result<ArenaView> view = ArenaView::open(arena.fd());
  return view ? "" : view.error().message;
}

TEST_CASE("a good arena is taken as it is") {
  TestArena arena({.rings = 3, .blocks = 5, .clock = ClockKind::kTsc});
  const Result<ArenaView> view = ArenaView::open(arena.fd());
  REQUIRE(view);
  CHECK(view->block_count() == 5);
  CHECK(view->geometry().max_rings == 3);
  CHECK(view->clock_kind() == ClockKind::kTsc);
  CHECK(std::memcmp(view->token(), "0123456789abcdef", 16) == 0);
  arena.ring(2).tid = 77;
  CHECK(view->ring(2).tid == 77);
}

TEST_CASE("a file that could shrink or grow is refused") {
  TestArena unsealed({.seals = 0});
  CHECK(why_not(unsealed) ==
        "arena is not sealed against a change of its size");
  TestArena half({.seals = F_SEAL_GROW});
  CHECK(why_not(half) == "arena is not sealed against a change of its size");
  const Result<ArenaView> plain =
      ArenaView::open(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)));
  REQUIRE_FALSE(plain);
  CHECK(plain.error().message == "arena is not a memfd");
}

TEST_CASE("another magic, version or clock is refused, the version by name") {
  TestArena arena;
  arena.header().magic++;
  CHECK(why_not(arena) == "arena: not an arena");
  arena.header().magic--;
  arena.header().abi_version = 2;
  const Result<ArenaView> other = ArenaView::open(arena.fd());
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "arena of ABI version 2, this is 1");
  CHECK(other.error().errno_value == EPROTO);
  arena.header().abi_version = 1;
  arena.header().clock_kind = 3;
  CHECK(why_not(arena) == "arena: unknown clock kind 3");
}

TEST_CASE("every geometry that is not the file's is refused") {
  const auto refused = [](auto change) {
    TestArena arena;
    const ArenaGeometry good = arena.header().geometry;
    change(arena.header().geometry);
    const bool bad = !why_not(arena).empty();
    arena.header().geometry = good;  // TestArena unmaps by it
    return bad;
  };
  CHECK(refused([](ArenaGeometry& g) { g.arena_bytes--; }));
  CHECK(refused([](ArenaGeometry& g) { g.arena_bytes = UINT64_MAX; }));
  CHECK(refused([](ArenaGeometry& g) { g.max_rings = 0; }));
  CHECK(refused([](ArenaGeometry& g) { g.max_rings++; }));
  CHECK(refused([](ArenaGeometry& g) { g.max_rings = UINT32_MAX; }));
  CHECK(refused([](ArenaGeometry& g) { g.block_count = 0; }));
  CHECK(refused([](ArenaGeometry& g) { g.block_count++; }));
  CHECK(refused([](ArenaGeometry& g) { g.block_count = UINT32_MAX; }));
  CHECK(refused([](ArenaGeometry& g) { g.name_capacity = UINT32_MAX; }));
  CHECK(refused([](ArenaGeometry& g) { g.name_bytes_capacity = 0; }));
  CHECK(refused([](ArenaGeometry& g) { g.name_bytes_capacity = 1U << 31; }));
  CHECK(refused([](ArenaGeometry& g) { g.rings_offset = 4096; }));
  CHECK(refused([](ArenaGeometry& g) { g.rings_offset += 8; }));
  CHECK(refused([](ArenaGeometry& g) { g.rings_offset = UINT64_MAX - 4095; }));
  CHECK(refused([](ArenaGeometry& g) { g.states_offset -= 4096; }));
  CHECK(refused([](ArenaGeometry& g) { g.states_offset += 4; }));
  CHECK(refused([](ArenaGeometry& g) { g.names_offset = g.states_offset; }));
  CHECK(
      refused([](ArenaGeometry& g) { g.name_bytes_offset = g.names_offset; }));
  CHECK(refused([](ArenaGeometry& g) { g.blocks_offset += 4096; }));
  CHECK(refused([](ArenaGeometry& g) { g.blocks_offset = 0; }));
  CHECK_FALSE(refused([](ArenaGeometry&) {}));
}

TEST_CASE("more rings than there are is not believed") {
  TestArena arena({.rings = 3});
  const Result<ArenaView> view = ArenaView::open(arena.fd());
  REQUIRE(view);
  arena.header().rings_high = 2;
  CHECK(view->rings_in_use() == 2);
  arena.header().rings_high = UINT32_MAX;
  CHECK(view->rings_in_use() == 3);
  arena.ring(0).tid = 1;
  CHECK(view->ring_exists(0));
  CHECK_FALSE(view->ring_exists(2));
}

TEST_CASE("a block is freed for its owner only") {
  TestArena arena;
  const Result<ArenaView> view = ArenaView::open(arena.fd());
  REQUIRE(view);
  arena.state(4) = 2 + 1;
  arena.header().blocks_used = 1;
  arena.header().free_hint = 9;
  CHECK(view->owns(2, 4));
  CHECK_FALSE(view->owns(1, 4));
  view->free_block(1, 4);
  CHECK(arena.state(4) == 3);
  CHECK(arena.header().blocks_used == 1);
  view->free_block(2, 4);
  CHECK(arena.state(4) == 0);
  CHECK(arena.header().blocks_used == 0);
  CHECK(arena.header().free_hint == 4);
  arena.state(6) = 2 + 1;
  view->free_block(2, 6);
  CHECK(arena.header().free_hint == 4);  // the lowest stays
}

TEST_CASE("names are read as line text, and kept though they change") {
  TestArena arena;
  const uint32_t id = arena.add_name("st\"ep");
  const Result<ArenaView> view = ArenaView::open(arena.fd());
  REQUIRE(view);
  NameReader names(*view);
  CHECK(names.text(id) == "\"st\\\"ep\",\"start_ns\":");
  arena.name_bytes()[0] = 'X';
  CHECK(names.text(id) == "\"st\\\"ep\",\"start_ns\":");
}

TEST_CASE("names that are not there, or lie outside, are no text") {
  TestArena arena({.names = 8, .name_bytes = 4096});
  const uint32_t id = arena.add_name("good");
  const Result<ArenaView> view = ArenaView::open(arena.fd());
  REQUIRE(view);
  NameReader names(*view);
  CHECK(names.text(kNoName).empty());
  CHECK(names.text(id + 1).empty());
  CHECK(names.text(UINT32_MAX).empty());
  arena.header().names_count = UINT32_MAX;
  CHECK(names.text(9).empty());
  const auto reads = [&](NameEntry entry) {
    arena.name_entry(2) = entry;
    NameReader fresh(*view);
    return !fresh.text(2).empty();
  };
  CHECK(reads({4095, 1}));
  CHECK_FALSE(reads({4095, 2}));
  CHECK_FALSE(reads({4096, 1}));
  CHECK_FALSE(reads({UINT32_MAX, 2}));
  CHECK_FALSE(reads({0, 0}));
  CHECK_FALSE(reads({0, UINT32_MAX}));
}

TEST_CASE("more names than the cache holds are all read right") {
  TestArena arena({.names = 20'000, .name_bytes = 1U << 20});
  for (int i = 0; i < 20'000; ++i) {
    arena.add_name("name-" + std::to_string(i));
  }
  const Result<ArenaView> view = ArenaView::open(arena.fd());
  REQUIRE(view);
  NameReader names(*view);
  bool right = true;
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 20'000; ++i) {
      right = right && names.text(i + 1) ==
                           "\"name-" + std::to_string(i) + "\",\"start_ns\":";
    }
  }
  CHECK(right);
}

}  // namespace
}  // namespace shp
