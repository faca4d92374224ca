#include "cli/trace/ascend.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/trace/loose_json.h"
#include "cli/trace/output_file.h"
#include "common/jsonl/json_check.h"

namespace shp {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;
constexpr std::uintmax_t kMaxMetadataBytes = 4U << 20;

// The text of a small JSON file; empty when it is none.
std::string json_of(const fs::path& path) {
  std::error_code problem;
  const auto bytes = fs::file_size(path, problem);
  if (problem || bytes > kMaxMetadataBytes) {
    return {};
  }
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const bool object = is_json(text) && text.find('{') != std::string::npos;
  return object ? text : std::string();
}

// The value at a path of keys, empty when there is none.
std::string_view value_at(std::string_view text,
                          std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    text = loose_member(text, key);
  }
  return text;
}

std::optional<int64_t> time_at(std::string_view text,
                               std::initializer_list<const char*> keys,
                               int64_t unit_ns) {
  const std::optional<int64_t> value = loose_int(value_at(text, keys));
  constexpr int64_t kLimit = int64_t{1} << 61;
  return value && *value > 0 && *value < kLimit / unit_ns
             ? std::optional(*value * unit_ns)
             : std::nullopt;
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::error_code problem;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, problem)) {
    found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool starts_with(const std::string& text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

void take_profiler_info(std::string_view text, AscendCapture& out) {
  out.has_profiler_info = true;
  out.start_raw_ns = time_at(text, {"start_info", "start_monotonic"}, 1);
  out.end_realtime_ns = time_at(text, {"end_info", "collectionTimeEnd"}, 1);
  out.end_monotonic_ns = time_at(text, {"end_info", "MonotonicTimeEnd"}, 1);
  out.rank = loose_int(value_at(text, {"rank_id"}));
  const std::string_view activities =
      value_at(text, {"config", "common_config", "activities"});
  if (!activities.empty()) {
    out.device_profiled =
        activities.find("ProfilerActivity.NPU") != std::string_view::npos;
  }
}

// start_info lies in host/, and once more in each device's directory.
void take_prof(const fs::path& prof, AscendCapture& out) {
  std::string start = json_of(prof / "host" / "start_info");
  for (const fs::path& device : entries_of(prof)) {
    if (start.empty() && starts_with(device.filename().string(), "device_")) {
      const std::string number = device.filename().string().substr(7);
      start = json_of(device / ("start_info." + number));
    }
  }
  const auto realtime = time_at(start, {"collectionTimeBegin"}, 1000);
  const auto raw = time_at(start, {"clockMonotonicRaw"}, 1);
  if (realtime && raw) {
    out.prof_realtime_ns = realtime;
    out.prof_raw_ns = raw;
  }
  const std::string info = json_of(prof / "host" / "info.json");
  const std::string_view name = loose_text(value_at(info, {"hostname"}));
  if (!name.empty()) {
    out.host_name = name;
  }
}

// False when this directory is not where the capture's metadata lies.
bool take_directory(const fs::path& directory, AscendCapture& out) {
  bool found = false;
  for (const fs::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if (starts_with(name, "profiler_info") && entry.extension() == ".json") {
      const std::string text = json_of(entry);
      if (!text.empty()) {
        take_profiler_info(text, out);
        found = true;
      }
    } else if (starts_with(name, "PROF_")) {
      take_prof(entry, out);
      found = true;
    }
  }
  return found;
}

// MONOTONIC_RAW against MONOTONIC, by our calibrations; empty without any.
std::vector<ClockPoint> raw_points(const HostSummary& host) {
  if (host.raw_samples.size() >= 2) {
    return host.raw_samples;
  }
  std::vector<HostClock> samples;
  for (HostClock clock : host.clocks) {
    if (clock.monotonic_raw_ns) {
      clock.realtime_ns = *clock.monotonic_raw_ns;
      samples.push_back(clock);
    }
  }
  HostMetadata metadata = host.metadata;
  if (samples.size() < 2) {
    if (!metadata.start_monotonic_raw_ns || !metadata.stop_monotonic_raw_ns) {
      return {};
    }
    metadata.start_realtime_ns = *metadata.start_monotonic_raw_ns;
    metadata.stop_realtime_ns = *metadata.stop_monotonic_raw_ns;
  }
  return calibration_points(metadata, samples);
}

// D at the instant when RAW was `raw_ns`, by our own clocks.
int64_t realtime_minus_raw(const ClockRelation& realtime,
                           const ClockRelation& raw,
                           int64_t raw_ns) {
  int64_t host_ns = raw_ns - raw.offset_ns();
  // The rates differ by ppm: the second step is exact.
  for (int i = 0; i < 2; ++i) {
    host_ns = raw_ns - (raw.to_trace(host_ns) - host_ns);
  }
  return realtime.to_trace(host_ns) - raw.to_trace(host_ns);
}

ClockRelation shifted(std::vector<ClockPoint> points, int64_t by_ns) {
  for (ClockPoint& point : points) {
    point.trace_ns += by_ns;
  }
  return {"ascend", std::move(points)};
}

Status check_boot(const AscendCapture& capture,
                  const ClockRelation& realtime,
                  const HostSummary& host) {
  if (!capture.end_realtime_ns || !capture.end_monotonic_ns) {
    return {};
  }
  const int64_t theirs = *capture.end_realtime_ns - *capture.end_monotonic_ns;
  const int64_t ours =
      realtime.to_trace(*capture.end_monotonic_ns) - *capture.end_monotonic_ns;
  const int64_t apart = std::llabs(theirs - ours) / kSecond;
  if (apart >= 1) {
    return error("its clocks are " + std::to_string(apart) +
                 " s from those of " + host.path +
                 " (another host or boot, or the clock was set)");
  }
  return {};
}

}  // namespace

AscendCapture read_ascend_capture(const std::string& trace_path) {
  AscendCapture out;
  const fs::path beside = directory_of(trace_path);
  if (!take_directory(beside, out)) {
    take_directory(beside / "..", out);
  }
  return out;
}

Result<ClockRelation> ascend_relation(const AscendCapture& capture,
                                      bool device_rows,
                                      const TimeWindow& window,
                                      const HostSummary& host) {
  ClockRelation realtime = realtime_relation(host.metadata, host.clocks);
  const Status same_boot = check_boot(capture, realtime, host);
  if (!same_boot) {
    return tl::unexpected<Error>(same_boot.error());
  }
  std::vector<ClockPoint> points = raw_points(host);
  const bool device = capture.device_profiled.value_or(device_rows);
  if (!device) {
    if (!capture.end_realtime_ns || !capture.end_monotonic_ns) {
      return error("is an Ascend trace of the CPU alone without profiler_info");
    }
    if (points.empty()) {
      return error(
          "is an Ascend trace of the CPU alone, in MONOTONIC_RAW, "
          "which " +
          host.path + " has no sample of");
    }
    return shifted(std::move(points),
                   *capture.end_realtime_ns - *capture.end_monotonic_ns);
  }
  if (points.empty() || (!capture.prof_raw_ns && !capture.start_raw_ns)) {
    // RAW and REALTIME were equal at the start and run apart by 500 ppm at
    // most.
    const int64_t start = capture.prof_realtime_ns.value_or(window.begin);
    const int64_t age = std::max(std::llabs(window.end - start),
                                 std::llabs(window.begin - start));
    realtime.add_uncertainty(age / 2000 + 1000);
    return realtime;
  }
  const ClockRelation raw("raw", points);
  if (capture.prof_raw_ns) {
    return shifted(std::move(points),
                   *capture.prof_realtime_ns - *capture.prof_raw_ns);
  }
  // The PROF directory was removed: its start was within ms of start_info's.
  ClockRelation relation =
      shifted(std::move(points),
              realtime_minus_raw(realtime, raw, *capture.start_raw_ns));
  relation.add_uncertainty(realtime.uncertainty_ns() + 1000);
  return relation;
}

}  // namespace shp
