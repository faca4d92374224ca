#include "daemon/session_clock.h"

#include <doctest/doctest.h>

namespace shp {
namespace {

ClockSample at(uint64_t ticks, int64_t monotonic, int64_t realtime) {
  ClockSample sample;
  sample.ticks = ticks;
  sample.monotonic_ns = monotonic;
  sample.realtime_ns = realtime;
  return sample;
}

// Two ticks a nanosecond.
const ClockSample kEarly = at(0, 0, 0);
const ClockSample kOurs = at(20'000'000'000, 10'000'000'000, 0);

TEST_CASE("a client of our own time namespace is not shifted") {
  // 2 ms before ours.
  const ClockSample client = at(19'996'000'000, 9'998'000'000, 0);
  CHECK(monotonic_shift_ns(ClockKind::kTsc, client, kOurs, kEarly) == 0);
  // Nor for what a comparison cannot resolve.
  const ClockSample near = at(19'996'000'000, 9'998'900'000, 0);
  CHECK(monotonic_shift_ns(ClockKind::kTsc, near, kOurs, kEarly) == 0);
}

TEST_CASE("a client of another time namespace is shifted by its constant") {
  const ClockSample ahead =
      at(19'996'000'000, 9'998'000'000 + 5'000'000'000, 0);
  CHECK(monotonic_shift_ns(ClockKind::kTsc, ahead, kOurs, kEarly) ==
        5'000'000'000);
  const ClockSample behind = at(19'996'000'000, 998'000'000, 0);
  CHECK(monotonic_shift_ns(ClockKind::kTsc, behind, kOurs, kEarly) ==
        -9'000'000'000);
}

TEST_CASE("without a counter the wall clock is what both have") {
  const ClockSample ours = at(50, 50, 1'000'000'000'050);
  const ClockSample client =
      at(7'000'000'040, 7'000'000'040, 1'000'000'000'040);
  CHECK(monotonic_shift_ns(ClockKind::kMonotonic, client, ours, ours) ==
        7'000'000'000);
}

TEST_CASE("what we read is said in the client's clock") {
  const ClockSample ahead = at(19'996'000'000, 14'998'000'000, 0);
  const SessionClock clock(ClockKind::kTsc, ahead, kOurs, kEarly);
  CHECK(clock.shift_ns() == 5'000'000'000);
  ClockSample read = at(20'000'000'002, 10'000'000'001, 77);
  read.monotonic_raw_ns = 9;
  const ClockSample said = clock.shifted(read);
  CHECK(said.ticks == 20'000'000'002);
  CHECK(said.monotonic_ns == 15'000'000'001);
  CHECK(said.monotonic_raw_ns == 5'000'000'009);
  CHECK(said.realtime_ns == 77);
}

}  // namespace
}  // namespace shp
