#include "cli/trace/clock_align.h"

#include <doctest/doctest.h>

using namespace shp;

namespace {

HostMetadata session() {
  HostMetadata metadata;
  metadata.start_monotonic_ns = 1'000;
  metadata.clock_uncertainty_ns = 20;
  metadata.start_realtime_ns = 500'000;  // at 1'010
  metadata.stop_monotonic_ns = 2'000'020;
  metadata.stop_realtime_ns = 2'499'000;  // at 2'000'010
  return metadata;
}

}  // namespace

TEST_CASE("start and stop that agree give one offset") {
  const ClockRelation relation = realtime_relation(session(), {});
  CHECK(relation.source() == "realtime");
  CHECK(relation.to_trace(1'010) == 500'000);
  CHECK(relation.to_trace(2'000'010) == 2'499'000);
  // The offset is 498'990 at both ends.
  CHECK(relation.to_trace(1'000'000) == 1'498'990);
  CHECK(relation.offset_ns() == 498'990);
  CHECK(relation.uncertainty_ns() == 10);
  CHECK(relation.steps().empty());
}

TEST_CASE("two ends that cannot agree are joined by a line") {
  HostMetadata metadata = session();
  // 10 ns at the start and 10 + 1,000 at the stop do not reach 2,100.
  metadata.stop_realtime_ns += 2'100;
  const ClockRelation relation = realtime_relation(metadata, {});
  CHECK(relation.to_trace(2'000'010) == 2'501'100);
  CHECK(relation.to_trace(1'000'510) == 1'000'510 + 498'990 + 1'050);
  // Half the wider bracket, and half of what the offset changed.
  CHECK(relation.uncertainty_ns() == 1'010 + 1'050);
  CHECK(relation.steps().empty());
}

TEST_CASE("clock lines that agree give the offset that all of them admit") {
  // 10,000 +- 2, +- 4 and 10,001 +- 1: from 10,000 to 10,002.
  const std::vector<HostClock> clocks = {
      {2'000, 12'000, 4, {}}, {1'000, 11'000, 8, {}}, {3'000, 13'001, 2, {}}};
  const ClockRelation relation = realtime_relation(session(), clocks);
  CHECK(relation.to_trace(1'500) == 11'501);
  CHECK(relation.to_trace(4'000) == 14'001);
  CHECK(relation.uncertainty_ns() == 1);
}

TEST_CASE("clock lines go before the metadata, in any order") {
  const std::vector<HostClock> clocks = {{2'000'000, 12'000'000, 4, {}},
                                         {1'000'000, 11'000'000, 8, {}},
                                         {3'000'000, 13'000'100, 2, {}}};
  const ClockRelation relation = realtime_relation(session(), clocks);
  CHECK(relation.to_trace(1'500'000) == 11'500'000);
  CHECK(relation.to_trace(2'500'000) == 12'500'050);
  CHECK(relation.to_trace(3'000'000) == 13'000'100);
  // Outside the samples the offset of the nearest one holds.
  CHECK(relation.to_trace(0) == 10'000'000);
  CHECK(relation.to_trace(4'000'000) == 14'000'100);
  CHECK(relation.uncertainty_ns() == 4 + 50);
  CHECK(relation.steps().empty());
}

TEST_CASE("a set wall clock is a step, with its size and place") {
  const std::vector<HostClock> clocks = {{1'000'000, 5'000'000, 100, {}},
                                         {2'000'000, 6'000'000, 100, {}},
                                         {3'000'000, 9'000'000, 100, {}},
                                         {4'000'000, 10'000'000, 100, {}}};
  const ClockRelation relation = realtime_relation(session(), clocks);
  REQUIRE(relation.steps().size() == 1);
  CHECK(relation.steps()[0].from_ns == 2'000'000);
  CHECK(relation.steps()[0].to_ns == 3'000'000);
  CHECK(relation.steps()[0].by_ns == 2'000'000);
  CHECK(relation.uncertainty_ns() == 50);
}

TEST_CASE("slewing by 500 ppm is no step, more is") {
  // 1 s apart: 500'000 ns, and twice both half brackets.
  const auto steps = [](int64_t change) {
    const std::vector<HostClock> clocks = {
        {0, 0, 100, {}}, {1'000'000'000, 1'000'000'000 + change, 100, {}}};
    return realtime_relation(session(), clocks).steps().size();
  };
  CHECK(steps(500'200) == 0);
  CHECK(steps(-500'200) == 0);
  CHECK(steps(500'201) == 1);
  CHECK(steps(-500'201) == 1);
}

TEST_CASE("a given offset is exact, a given line goes straight on") {
  CHECK(ClockRelation::from_offset(-7).to_trace(10) == 3);
  const ClockRelation line =
      ClockRelation::from_anchors({100, 1'000, 0}, {200, 1'200, 0});
  CHECK(line.source() == "anchors");
  CHECK(line.to_trace(100) == 1'000);
  CHECK(line.to_trace(150) == 1'100);
  CHECK(line.to_trace(300) == 1'400);
  CHECK(line.to_trace(0) == 800);
}

TEST_CASE("large times lose no ns") {
  const int64_t host = 4'000'000'000'000'000;
  const int64_t unix_ns = 1'796'128'747'491'868'518;
  const ClockRelation relation(
      "realtime",
      {{host, unix_ns, 1},
       {host + 86'400'000'000'000, unix_ns + 86'400'000'000'007, 1}});
  CHECK(relation.to_trace(host + 43'200'000'000'000) ==
        unix_ns + 43'200'000'000'003);
  CHECK(relation.to_trace(host + 86'400'000'000'000) ==
        unix_ns + 86'400'000'000'007);
}
