#include "common/base/tick_clock.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace shp {
namespace {

ClockSample sample(uint64_t ticks, int64_t ns) {
  ClockSample s;
  s.ticks = ticks;
  s.monotonic_ns = ns;
  return s;
}

TEST_CASE("a monotonic clock's ticks are its nanoseconds") {
  TickClock clock(ClockKind::kMonotonic, sample(5, 5));
  clock.add(sample(100, 777));
  CHECK(clock.to_ns(0) == 0);
  CHECK(clock.to_ns(123'456) == 123'456);
}

TEST_CASE("between two calibrations the line through both is taken") {
  // 2.5 ticks a nanosecond: 1000 ticks are 400 ns.
  TickClock clock(ClockKind::kTsc, sample(10'000, 1'000'000));
  clock.add(sample(20'000, 1'004'000));
  CHECK(clock.to_ns(10'000) == 1'000'000);
  CHECK(clock.to_ns(11'000) == 1'000'400);
  CHECK(clock.to_ns(15'000) == 1'002'000);
  CHECK(clock.to_ns(20'000) == 1'004'000);
}

TEST_CASE("a slow counter's line is taken too") {
  // 24 MHz: 41 2/3 ns a tick.
  TickClock clock(ClockKind::kCntvct, sample(0, 0));
  clock.add(sample(24'000'000, 1'000'000'000));
  CHECK(clock.to_ns(12'000'000) == 500'000'000);
  CHECK(clock.to_ns(1) == 42);
}

TEST_CASE("ticks before the first calibration lie on the first line") {
  TickClock clock(ClockKind::kTsc, sample(10'000, 1'000'000));
  clock.add(sample(20'000, 1'010'000));
  CHECK(clock.to_ns(9'000) == 999'000);
}

TEST_CASE("a counter that changes its pace bends the line at the calibration") {
  TickClock clock(ClockKind::kTsc, sample(0, 0));
  clock.add(sample(1'000'000, 1'000'000));
  // From here on a tick is 1.5 ns.
  clock.add(sample(2'000'000, 2'500'000));
  CHECK(clock.to_ns(500'000) == 500'000);
  CHECK(clock.to_ns(1'500'000) == 1'750'000);
  CHECK(clock.to_ns(2'000'000) == 2'500'000);
}

TEST_CASE("a calibration that was foretold makes no new piece") {
  TickClock clock(ClockKind::kTsc, sample(0, 0));
  clock.add(sample(10'000'000, 10'000'000));
  const size_t pieces = clock.pieces();
  for (uint64_t i = 2; i < 1000; ++i) {
    // 20 ns of noise either way.
    const int64_t noise = i % 2 == 0 ? 20 : -20;
    clock.add(
        sample(i * 10'000'000, static_cast<int64_t>(i) * 10'000'000 + noise));
  }
  CHECK(clock.pieces() == pieces);
}

TEST_CASE("a calibration that goes back is not followed") {
  TickClock clock(ClockKind::kTsc, sample(0, 0));
  clock.add(sample(1000, 1000));
  clock.add(sample(500, 9000));
  CHECK(clock.last_ticks() == 1000);
  // Time stands still rather than run backwards.
  clock.add(sample(2000, 10));
  CHECK(clock.to_ns(1000) == 1000);
  CHECK(clock.to_ns(2000) >= 1000);
}

TEST_CASE("large ticks and times do not overflow") {
  const uint64_t ticks = uint64_t{1} << 63;
  const int64_t ns = int64_t{1} << 61;
  TickClock clock(ClockKind::kTsc, sample(ticks, ns));
  clock.add(sample(ticks + (uint64_t{1} << 62), ns + (int64_t{1} << 61)));
  CHECK(clock.to_ns(ticks + (uint64_t{1} << 61)) == ns + (int64_t{1} << 60));
}

// A simulated day: a 2.4 GHz counter whose pace wanders by parts in 10^8 a
// second within 20 ppm, looked at every 20 ms with 25 ns of noise.
TEST_CASE("over a long session what was converted stays and never falls") {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int64_t> noise(-25, 25);
  std::normal_distribution<double> wander(0, 1e-8);
  double ppm = 5e-6;
  double ticks = 1e12;
  double ns = 5e11;
  TickClock clock(
      ClockKind::kTsc,
      sample(static_cast<uint64_t>(ticks), static_cast<int64_t>(ns)));
  struct Converted {
    uint64_t ticks;
    int64_t ns;
  };
  std::vector<Converted> converted;
  double worst = 0;
  for (int i = 0; i < 500'000; ++i) {
    ppm = std::clamp(ppm + wander(random) * 0.14, -20e-6, 20e-6);
    ns += 20e6;
    ticks += 20e6 * 2.4 * (1 + ppm);
    clock.add(sample(static_cast<uint64_t>(ticks),
                     static_cast<int64_t>(ns) + noise(random)));
    const auto now = static_cast<uint64_t>(ticks);
    worst =
        std::max(worst, std::abs(static_cast<double>(clock.to_ns(now)) - ns));
    if (i % 97 == 0) {
      const uint64_t at = now - random() % 48'000'000;
      converted.push_back({at, clock.to_ns(at)});
    }
  }
  CHECK(worst <= 86);  // 60 of tolerance, 25 of noise, 1 of rounding
  CHECK(clock.pieces() < 16384);
  int64_t last = 0;
  bool same = true;
  bool rises = true;
  for (const Converted& one : converted) {
    same = same && clock.to_ns(one.ticks) == one.ns;
    rises = rises && one.ns >= last;
    last = one.ns;
  }
  CHECK(same);
  CHECK(rises);
}

}  // namespace
}  // namespace shp
