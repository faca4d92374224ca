#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>

#include "daemon/drain.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_arena.h"

namespace shp {
namespace {

using test::TestArena;
using test::TestRing;

class StringSink : public LineSink {
 public:
  bool write(std::string_view bytes) override {
    text += bytes;
    return true;
  }
  std::string text;
};

ClockSample at(int64_t ns) {
  ClockSample sample;
  sample.ticks = static_cast<uint64_t>(ns);
  sample.monotonic_ns = ns;
  return sample;
}

TEST_CASE("marks become lines, and those that cannot are counted") {
  TestArena arena;
  const uint32_t step = arena.add_name("step");
  test::TemporaryDirectory directory;
  StringSink sink;
  LineWriter writer(sink);
  DeferredSpool spool(directory.fd.get());
  const ArenaView view = std::move(*ArenaView::open(arena.fd()));
  Drain drain(view, writer, spool, {3, 7, at(1000)});
  TestRing ring(arena, 0);
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  ring.record(kInstant, 0, step, 1100, 0, 1);  // an earlier session's
  ring.session(3);
  ring.record(kInstant, 0, step, 1100, 0, 1);
  ring.record(kCounter, 0, step, 1200, bits(2.5), 2);
  ring.record(kInstant, 0, step, 999, 0, 3);          // before the session
  ring.record(kInstant, 0, step, 900'000'000, 0, 4);  // after now
  ring.record(kInstant, 0, 77, 1100, 0, 5);           // no such name
  ring.record(kCounter, 0, step, 1200, bits(NAN), 6);
  ring.record(kInstant, kBadArgs, step, 1300, 0, 7);
  arena.ring(0).lost_marks += 2;
  arena.header().lost_marks += 4;
  drain.see_tails();
  drain.round(at(2000));
  writer.flush();
  drain.commit(sink.text.size());
  CHECK(sink.text ==
        "{\"type\":\"instant\",\"pid\":7,\"tid\":100,\"name\":\"step\","
        "\"time_ns\":1100,\"args\":{}}\n"
        "{\"type\":\"counter\",\"pid\":7,\"tid\":100,\"name\":\"step\","
        "\"time_ns\":1200,\"args\":{\"value\":2.5}}\n"
        "{\"type\":\"instant\",\"pid\":7,\"tid\":100,\"name\":\"step\","
        "\"time_ns\":1300,\"args\":{}}\n");
  CHECK(drain.dropped_marks() == 10);
  CHECK(drain.bad_args() == 1);
  CHECK(drain.losses().sum() == 0);
  const CommitRecord& half = arena.header().commit[arena.header().commit_index];
  CHECK(half.written_instants == 2);
  CHECK(half.written_counters == 1);
}

}  // namespace
}  // namespace shp
