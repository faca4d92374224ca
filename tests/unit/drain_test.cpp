#include "daemon/drain.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/drain_fixture.h"

namespace shp {
namespace {

using namespace test;

TEST_CASE("spans of a session become lines, ring by ring") {
  Fixture f;
  TestRing one(f.arena, 0, 11);
  TestRing two(f.arena, 1, 12);
  one.session(3);
  two.session(3);
  one.span(f.step, 1100, 1200);
  two.span(f.step, 1050, 1060);
  one.span(f.step, 1300, 1300);
  f.round(2000);
  CHECK(f.spans() == Lines{"11:1100+100", "11:1300+0", "12:1050+10"});
  f.round(2100);
  CHECK(f.spans().size() == 3);
  CHECK(f.drain->losses().sum() == 0);
}

TEST_CASE("records of an earlier session are nobody's") {
  Fixture f(false);
  TestRing ring(f.arena, 0);
  ring.session(2);
  ring.span(f.step, 500, 600, 1);
  f.start(3);
  ring.span(f.step, 700, 1100, 2);  // lands after the last drain of 2
  ring.session(3);
  ring.span(f.step, 1100, 1200, 3);
  f.round(2000);
  CHECK(f.spans() == Lines{"100:1100+100"});
  CHECK(f.drain->losses().sum() == 0);
}

TEST_CASE("a later session goes on where the earlier one's drain stopped") {
  Fixture f;
  TestRing ring(f.arena, 0);
  ring.session(3);
  ring.span(f.step, 1100, 1200);
  f.finish(2000);
  ring.session(4);
  ring.span(f.step, 1300, 1400);
  f.start(4);
  f.round(3000);
  CHECK(f.spans() == Lines{"100:1100+100", "100:1300+100"});
}

TEST_CASE("a ring that is idle for a session is gone on with in the next") {
  Fixture f;
  TestRing idle(f.arena, 0, 11);
  TestRing busy(f.arena, 1, 12);
  idle.session(3);
  // Into its second block, so that the first one goes back to the pool.
  for (int i = 0; i < 1500; ++i) {
    idle.span(f.step, 1100, 1200);
  }
  f.finish(2000);
  f.start(4);
  busy.session(4);
  for (int i = 0; i < 3; ++i) {
    busy.span(f.step, 1300, 1400);
    f.round(3000 + i);
  }
  f.finish(4000);
  f.start(5);
  idle.session(5);
  idle.span(f.step, 1500, 1600);
  f.round(5000);
  CHECK(f.drain->broken_rings() == 0);
  CHECK(f.spans().size() == 1504);
  CHECK(f.spans().back() == "11:1500+100");
}

TEST_CASE("spans outside the session are counted and not written") {
  Fixture f;
  TestRing ring(f.arena, 0);
  ring.session(3);
  ring.span(f.step, 999, 1100);          // began before
  ring.span(f.step, 1200, 1100);         // ends before it begins
  ring.span(f.step, 1100, 900'000'000);  // ends after now
  ring.span(f.step, 1000, 1000);         // right at the start
  f.round(2000);
  CHECK(f.spans() == Lines{"100:1000+0"});
  CHECK(f.drain->losses().outside == 3);
  ring.span(f.step, 2000, 2500);
  ring.span(f.step, 2000, 2501);
  f.finish(2500);
  CHECK(f.spans() == Lines{"100:1000+0", "100:2000+500"});
  CHECK(f.drain->losses().outside == 4);
  CHECK(f.drain->losses().sum() == 4);
}

TEST_CASE("open spans at the end are unfinished, but not those that end yet") {
  Fixture f;
  TestRing ring(f.arena, 0, 11);
  ring.session(3);
  ring.open_slot(0, f.step, 1500, 0x10000);
  ring.open_slot(5, f.step, 1100, 0x20005);
  ring.open_slot(7, f.step, 1300, 0x30007);
  f.arena.ring(0).open_beyond = 2;
  f.drain->begin_finish(at(2000));
  // These two are seen open and then end: one in a slot, one beyond them.
  ring.span(f.step, 1100, 1900, 0x20005);
  ring.span(f.step, 1150, 1950, 0x40000 | 120);
  f.drain->see_tails();
  f.drain->round(at(2000));
  f.drain->end_finish();
  f.writer.flush();
  CHECK(f.spans() == Lines{"11:1100+800", "11:1150+800"});
  CHECK(f.drain->losses().unfinished == 3);
  const std::vector<OpenSpanEntry> open = f.drain->open_spans();
  REQUIRE(open.size() == 2);
  CHECK(open[0].start_ns == 1300);
  CHECK(open[0].tid == 11);
  CHECK(open[0].name_text == "\"step\",\"start_ns\":");
  CHECK(open[1].start_ns == 1500);
}

TEST_CASE("open slots of another session are not ours to count") {
  Fixture f;
  TestRing ring(f.arena, 0);
  ring.session(2);
  ring.open_slot(0, f.step, 500, 0x10000);
  f.finish(2000);
  CHECK(f.drain->losses().unfinished == 0);
}

TEST_CASE("a drained ring of a finished thread is free again, its spans kept") {
  Fixture f;
  TestRing first(f.arena, 0, 11);
  first.session(3);
  first.span(f.step, 1100, 1200);
  first.open_slot(3, f.step, 1250, 0x10003);
  f.arena.ring(0).open_beyond = 1;
  first.release();
  f.round(2000);
  CHECK(f.arena.ring(0).state == kFree);
  CHECK(f.arena.ring(0).tail == 0);
  CHECK(f.arena.state(0) == 0);
  CHECK(f.arena.header().blocks_used == 0);
  CHECK(f.drain->losses().unfinished == 2);
  // The next thread in the same ring is another one.
  TestRing second(f.arena, 0, 12);
  second.session(3);
  second.span(f.step, 2100, 2200);
  f.round(3000);
  CHECK(f.spans() == Lines{"11:1100+100", "12:2100+100"});
  f.finish(4000);
  f.drain->write_threads();
  f.writer.flush();
  CHECK(f.drain->losses().unfinished == 2);
  CHECK(f.sink.text.find("{\"type\":\"thread\",\"tid\":11,") !=
        std::string::npos);
  CHECK(f.sink.text.find("{\"type\":\"thread\",\"tid\":12,") !=
        std::string::npos);
}

TEST_CASE("a ring that is claimed and has no record yet is waited for") {
  Fixture f;
  TestRing first(f.arena, 0, 11);
  f.round(2000);
  // The thread describes itself after the claim, before its first record.
  f.arena.ring(0).tid = 99;
  first.session(3);
  first.span(f.step, 1100, 1200);
  f.round(3000);
  CHECK(f.spans() == Lines{"99:1100+100"});
}

TEST_CASE("blocks go back to the pool behind what is in the file") {
  Fixture f;
  TestRing ring(f.arena, 0);
  ring.session(3);
  // 16 blocks of 1022 records: five times through the pool.
  for (int lap = 0; lap < 5; ++lap) {
    for (int i = 0; i < 15'000; ++i) {
      REQUIRE(ring.span(f.step, 1100, 1200));
    }
    f.round(2000);
    CHECK(f.arena.header().blocks_used <= 2);
  }
  CHECK(f.writer.spans() == 75'000);
}

TEST_CASE("a commit names the file's length and every ring's position") {
  Fixture f;
  TestRing one(f.arena, 0);
  TestRing two(f.arena, 1);
  one.session(3);
  two.session(3);
  one.span(f.step, 1100, 1200);
  const uint32_t before = f.arena.header().commit_index;
  f.round(2000);
  const uint32_t half = f.arena.header().commit_index;
  CHECK(half == 1 - before);
  CHECK(f.arena.header().commit[half].file_bytes == f.sink.text.size());
  CHECK(f.arena.header().commit[half].written_spans == 1);
  CHECK(f.arena.ring(0).drained[half] == one.tail());
  CHECK(f.arena.ring(1).drained[half] == two.tail());
  // Only ring 1 moves; the other half must know ring 0's position too.
  two.span(f.step, 1100, 1200);
  f.round(2100);
  CHECK(f.arena.header().commit_index == before);
  CHECK(f.arena.ring(0).drained[before] == one.tail());
  CHECK(f.arena.ring(1).drained[before] == two.tail());
}

TEST_CASE("args come along, bad ones cost their span its args only") {
  Fixture f;
  TestRing ring(f.arena, 0);
  ring.session(3);
  ring.record(
      kSpan, kHasArgs, f.step, 1100, 1101, 1, test::counted("{\"a\": 1}"));
  ring.record(kSpan, kHasArgs, f.step, 1200, 1201, 2, test::counted("{oops"));
  ring.record(kSpan, kBadArgs, f.step, 1300, 1301, 3);
  ring.record(kSpan, kHasArgs, f.step, 1400, 1401, 4, "");
  f.round(2000);
  CHECK(f.spans() ==
        Lines{"100:1100+1{\"a\":1}", "100:1200+1", "100:1300+1", "100:1400+1"});
  CHECK(f.drain->bad_args() == 3);
}

TEST_CASE("deferred spans are written when their args come, or at the end") {
  Fixture f;
  TestRing ring(f.arena, 0, 11);
  ring.session(3);
  for (uint64_t key = 1; key <= 3; ++key) {
    ring.record(kSpan,
                kHasDeferred,
                f.step,
                1000 + key,
                1010 + key,
                key,
                test::key_bytes(key));
  }
  f.round(2000);
  CHECK(f.spans().empty());
  ring.record(kDeferred,
              kHasArgs,
              0,
              0,
              0,
              2,
              test::key_bytes(2) + test::counted("{\"k\":2}"));
  ring.record(kDeferred, 0, 0, 0, 0, 3, test::key_bytes(3));
  f.finish(3000);
  CHECK(f.spans() == Lines{"11:1002+10{\"k\":2}", "11:1003+10", "11:1001+10"});
  CHECK(f.drain->bad_args() == 2);
  CHECK(f.drain->losses().sum() == 0);
}

TEST_CASE("deferred args may be read before their spans, of another ring") {
  Fixture f;
  TestRing stopper(f.arena, 0, 11);
  TestRing worker(f.arena, 1, 12);
  stopper.session(3);
  worker.session(3);
  stopper.record(kDeferred,
                 kHasArgs,
                 0,
                 0,
                 0,
                 1,
                 test::key_bytes(1) + test::counted("{\"a\":1}"));
  f.round(1500);
  for (uint64_t key : {1, 2}) {
    worker.record(kSpan,
                  kHasDeferred,
                  f.step,
                  1100 * key,
                  1100 * key + 5,
                  key,
                  test::key_bytes(key));
  }
  f.finish(9000);
  CHECK(f.spans() == Lines{"12:1100+5{\"a\":1}", "12:2200+5"});
  CHECK(f.drain->bad_args() == 1);
}

TEST_CASE("names that are not there cost their span, counted") {
  Fixture f;
  TestRing ring(f.arena, 0);
  ring.session(3);
  ring.span(0, 1100, 1200);
  ring.span(77, 1100, 1200);
  f.round(2000);
  CHECK(f.spans().empty());
  CHECK(f.drain->losses().bad_name == 2);
}

TEST_CASE("the arena's own counts are this session's part of them") {
  Fixture f(false);
  TestRing ring(f.arena, 0);
  f.arena.ring(0).overflow = 10;
  f.arena.ring(0).reentrant = 20;
  f.arena.header().lost_no_ring = 30;
  f.arena.header().lost_bad_name = 40;
  f.arena.header().bad_args = 50;
  f.arena.header().names_lost = 60;
  f.start();
  f.arena.ring(0).overflow = 11;
  f.arena.ring(0).reentrant = 22;
  f.arena.header().lost_no_ring = 33;
  f.arena.header().lost_bad_name = 44;
  f.arena.header().bad_args = 55;
  f.arena.header().names_lost = 66;
  TestRing later(f.arena, 1);
  f.arena.ring(1).overflow = 100;
  f.round(2000);
  const Losses lost = f.drain->losses();
  CHECK(lost.overflow == 101);
  CHECK(lost.reentrant == 2);
  CHECK(lost.no_ring == 3);
  CHECK(lost.bad_name == 4);
  CHECK(lost.sum() == 110);
  CHECK(f.drain->bad_args() == 5);
  CHECK(f.drain->names_lost() == 6);
}

TEST_CASE("a ring that breaks a rule costs itself and nobody else") {
  Fixture f;
  TestRing bad(f.arena, 0, 11);
  TestRing good(f.arena, 1, 12);
  bad.session(3);
  good.session(3);
  bad.span(f.step, 1100, 1200);
  good.span(f.step, 1100, 1200);
  f.arena.ring(0).tail = position_of(9999, 64);
  f.round(2000);
  good.span(f.step, 1300, 1400);
  f.round(2100);
  CHECK(f.spans() == Lines{"12:1100+100", "12:1300+100"});
  CHECK(f.drain->broken_rings() == 1);
}

}  // namespace
}  // namespace shp
