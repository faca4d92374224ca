// Deciding, part two: how a host file's CLOCK_MONOTONIC becomes a trace's time.
//
// Pure arithmetic, exact in integers. A relation is a line through two or more
// points (host ns, trace ns); between them it is interpolated, outside it goes
// on with the same offset (a line through given anchors goes on straight). It
// is monotonic unless the wall clock was set back, which is one of the steps
// that it reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/jsonl/line_reader.h"

namespace shp {

struct ClockPoint {
  int64_t host_ns = 0;
  int64_t trace_ns = 0;
  int64_t half_width_ns = 0;  // how far off the pair may be
};

// The wall clock was set between two samples of the session.
struct ClockStep {
  int64_t from_ns = 0;  // CLOCK_MONOTONIC of the samples around it
  int64_t to_ns = 0;
  int64_t by_ns = 0;
};

class ClockRelation {
 public:
  // `points` is not empty, host_ns ascending and distinct.
  ClockRelation(std::string source, std::vector<ClockPoint> points);

  // trace = host + offset, exactly.
  static ClockRelation from_offset(int64_t offset_ns);
  // The line through two pairs, first.host_ns < second.host_ns.
  static ClockRelation from_anchors(ClockPoint first, ClockPoint second);

  int64_t to_trace(int64_t host_ns) const;

  // Where it comes from: "realtime", "offset", "anchors", "ascend".
  const std::string& source() const { return source_; }
  // trace minus host at the first point.
  int64_t offset_ns() const;
  // How far a span may be from where it belongs: half the widest bracket, and
  // half of what the offset changes between two points.
  int64_t uncertainty_ns() const { return uncertainty_ns_; }
  void add_uncertainty(int64_t ns) { uncertainty_ns_ += ns; }

  // Changes of the offset between two points by more than any slewing does.
  const std::vector<ClockStep>& steps() const { return steps_; }

 private:
  void measure();

  std::string source_;
  bool straight_ = false;  // goes on with its slope outside the points
  std::vector<ClockPoint> points_;
  std::vector<ClockStep> steps_;
  int64_t uncertainty_ns_ = 0;
};

// Pairs of host time and REALTIME: the clock lines when there are two, else
// start and stop of the metadata.
std::vector<ClockPoint> calibration_points(
    const HostMetadata& metadata, const std::vector<HostClock>& clocks);

// Trace time is CLOCK_REALTIME, by the session's own calibrations: its clock
// lines when there are two, else start and stop of its metadata.
ClockRelation realtime_relation(const HostMetadata& metadata,
                                const std::vector<HostClock>& clocks);

}  // namespace shp
