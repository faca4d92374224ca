// The arithmetic of section "clock" in ascend.h, with numbers worked out here:
// on this made-up host MONOTONIC_RAW is MONOTONIC + 7 s, REALTIME is MONOTONIC
// + 1000 s.

#include "cli/trace/ascend.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace shp;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kRawAhead = 7 * kSecond;
constexpr int64_t kRealAhead = 1000 * kSecond;

// A session from 50 s to 60 s of MONOTONIC, bracket 100 ns.
HostSummary host(bool with_raw) {
  HostSummary file;
  file.path = "h.jsonl";
  HostMetadata& metadata = file.metadata;
  metadata.start_monotonic_ns = 50 * kSecond - 50;
  metadata.start_realtime_ns = 50 * kSecond + kRealAhead;
  metadata.clock_uncertainty_ns = 100;
  metadata.stop_monotonic_ns = 60 * kSecond + 50;
  metadata.stop_realtime_ns = 60 * kSecond + kRealAhead;
  if (with_raw) {
    metadata.start_monotonic_raw_ns = 50 * kSecond + kRawAhead;
    metadata.stop_monotonic_raw_ns = 60 * kSecond + kRawAhead;
  }
  return file;
}

TimeWindow window() {
  TimeWindow out;
  out.add(52 * kSecond + kRealAhead, 58 * kSecond + kRealAhead);
  return out;
}

AscendCapture capture(bool device) {
  AscendCapture out;
  out.has_profiler_info = true;
  out.device_profiled = device;
  out.start_raw_ns = 51 * kSecond + kRawAhead;
  out.end_monotonic_ns = 59 * kSecond;
  out.end_realtime_ns = 59 * kSecond + kRealAhead;
  return out;
}

}  // namespace

TEST_CASE("with the PROF pair and RAW samples the relation is exact") {
  AscendCapture with_prof = capture(true);
  // The wall clock was 3 ms behind when PROF took its pair.
  with_prof.prof_raw_ns = 51 * kSecond + kRawAhead;
  with_prof.prof_realtime_ns = 51 * kSecond + kRealAhead - 3'000'000;
  const auto relation = ascend_relation(with_prof, true, window(), host(true));
  REQUIRE(relation);
  CHECK(relation->source() == "ascend");
  CHECK(relation->to_trace(55 * kSecond) ==
        55 * kSecond + kRealAhead - 3'000'000);
  // Half the start's bracket; the stop's may be 1 us wider, the file does not
  // say.
  CHECK(relation->uncertainty_ns() == 50 + 1000);
}

TEST_CASE("RAW that runs faster than MONOTONIC is followed") {
  AscendCapture with_prof = capture(true);
  with_prof.prof_raw_ns = 50 * kSecond + kRawAhead;
  with_prof.prof_realtime_ns = 50 * kSecond + kRealAhead;
  HostSummary drifting = host(true);
  *drifting.metadata.stop_monotonic_raw_ns += 100'000;  // 10 ppm in 10 s
  const auto relation = ascend_relation(with_prof, true, window(), drifting);
  REQUIRE(relation);
  CHECK(relation->to_trace(55 * kSecond) == 55 * kSecond + kRealAhead + 50'000);
}

TEST_CASE("without PROF the pair at start_info comes from our own clocks") {
  const auto relation =
      ascend_relation(capture(true), true, window(), host(true));
  REQUIRE(relation);
  CHECK(relation->source() == "ascend");
  CHECK(relation->to_trace(55 * kSecond) == 55 * kSecond + kRealAhead);
  CHECK(relation->uncertainty_ns() == 50 + 1000 + 50 + 1000);
}

TEST_CASE("without RAW samples the wall clock's rule holds to 500 ppm") {
  const auto relation =
      ascend_relation(capture(true), true, window(), host(false));
  REQUIRE(relation);
  CHECK(relation->source() == "realtime");
  CHECK(relation->to_trace(55 * kSecond) == 55 * kSecond + kRealAhead);
  // 6 s of window.
  CHECK(relation->uncertainty_ns() == 50 + 3'000'000 + 1000);
}

TEST_CASE("of the CPU alone D is the end's, and only RAW samples help") {
  const auto relation =
      ascend_relation(capture(false), true, window(), host(true));
  REQUIRE(relation);
  // RAW + (REALTIME - MONOTONIC): displaced by RAW - MONOTONIC.
  CHECK(relation->to_trace(55 * kSecond) ==
        55 * kSecond + kRawAhead + kRealAhead);
  CHECK(ascend_relation(capture(false), true, window(), host(false))
            .error()
            .message ==
        "is an Ascend trace of the CPU alone, in MONOTONIC_RAW, which h.jsonl "
        "has no sample of");
}

TEST_CASE("a loose trace is judged by its rows") {
  const AscendCapture nothing;
  CHECK(ascend_relation(nothing, true, window(), host(false))->source() ==
        "realtime");
  CHECK(ascend_relation(nothing, false, window(), host(true)).error().message ==
        "is an Ascend trace of the CPU alone without profiler_info");
}

TEST_CASE("another host or boot is refused") {
  AscendCapture other = capture(true);
  *other.end_monotonic_ns -= 5 * kSecond;
  CHECK(ascend_relation(other, true, window(), host(true)).error().message ==
        "its clocks are 5 s from those of h.jsonl (another host or boot, or "
        "the clock was set)");
}

TEST_CASE("metadata is found where torch_npu leaves it") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / "shp-ascend-test";
  fs::remove_all(root);
  fs::create_directories(root / "ASCEND_PROFILER_OUTPUT");
  fs::create_directories(root / "PROF_1" / "host");
  std::ofstream(root / "profiler_info_3.json")
      << R"({"config":{"common_config":{"activities":["ProfilerActivity.CPU",)"
         R"("ProfilerActivity.NPU"]}},"start_info":{"syscnt_enable":true,)"
         R"("freq":100,"start_cnt":1,"start_monotonic":168723724831520},)"
         R"("end_info":{"collectionTimeEnd":1736405444130566220,)"
         R"("MonotonicTimeEnd":168724372147450},"rank_id":"3"})";
  std::ofstream(root / "PROF_1" / "host" / "start_info")
      << R"({"collectionDateBegin":"x","collectionTimeBegin":)"
         R"("1659098679447393","clockMonotonicRaw":"876117208663770"})";
  std::ofstream(root / "PROF_1" / "host" / "info.json")
      << R"({"hostname":"npu7","pid":"1000"})";
  const AscendCapture found = read_ascend_capture(
      (root / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").string());
  CHECK(found.has_profiler_info);
  CHECK(found.device_profiled == true);
  CHECK(found.start_raw_ns == 168'723'724'831'520);
  CHECK(found.end_realtime_ns == 1'736'405'444'130'566'220);
  CHECK(found.end_monotonic_ns == 168'724'372'147'450);
  CHECK(found.rank == 3);
  CHECK(found.prof_realtime_ns == 1'659'098'679'447'393'000);
  CHECK(found.prof_raw_ns == 876'117'208'663'770);
  CHECK(found.host_name == "npu7");
  fs::remove_all(root);
}
