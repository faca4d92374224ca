// What a daemon that was killed in the middle of a commit left half done, and
// the next one finishes.
#include <doctest/doctest.h>

#include "daemon/drain.h"
#include "tests/support/drain_fixture.h"

namespace shp {
namespace {

using namespace test;

// A finished thread's two blocks of records, drained whole; then the arena as a
// kill right after the commit's last store leaves it, with nothing freed yet.
struct KilledBeforeFreeing : Fixture {
  KilledBeforeFreeing() {
    TestRing ring(arena, 0, 11);
    ring.session(3);
    for (int i = 0; i < 1500; ++i) {
      ring.span(step, 1100, 1200);
    }
    const uint64_t tail = ring.tail();
    ring.release();
    round(2000);
    RingHeader& shared = arena.ring(0);
    const uint32_t half = arena.header().commit_index & 1;
    shared.state = kReleased;
    shared.tail = tail;
    shared.drained[half] = tail;
    shared.drained_session[half] = kRingDone;
    arena.state(0) = 1 | kBlockLeft;
    arena.state(1) = 1;
    arena.header().blocks_used = 2;
    drain.reset();
  }
  void take_up() {
    drain = std::make_unique<Drain>(
        view, writer, spool, Drain::Settings{3, 7, at(1000)});
    const auto from = Drain::committed(view, 3);
    REQUIRE(from);
    drain->take_up(*from);
  }
};

// Seen to fail while rings were freed before their blocks were mended: a free
// ring's left blocks are nobody's, and never free again.
TEST_CASE("the blocks of a ring that is freed at a take-up are free too") {
  KilledBeforeFreeing f;
  f.take_up();
  CHECK(f.arena.ring(0).state == kFree);
  CHECK(f.arena.state(0) == 0);
  CHECK(f.arena.state(1) == 0);
  CHECK(f.arena.header().blocks_used == 0);
  f.round(3000);
  CHECK(f.spans().size() == 1500);
}

TEST_CASE("so they are when another session begins in the arena") {
  KilledBeforeFreeing f;
  f.start(4);
  CHECK(f.arena.ring(0).state == kFree);
  CHECK(f.arena.state(0) == 0);
  CHECK(f.arena.state(1) == 0);
  CHECK(f.arena.header().blocks_used == 0);
}

}  // namespace
}  // namespace shp
