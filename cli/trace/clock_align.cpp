#include "cli/trace/clock_align.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace shp {
namespace {

__extension__ using Wide = __int128;

// The kernel slews a clock by 500 ppm at most.
constexpr int64_t kSlewPpm = 500;

int64_t offset_of(const ClockPoint& point) {
  return point.trace_ns - point.host_ns;
}

// a * b / c, towards minus infinity so that it is monotonic; kept far inside
// 64 bits whatever odd anchors ask for. c > 0.
int64_t scale(int64_t a, int64_t b, int64_t c) {
  constexpr Wide kLimit = Wide{1} << 61;
  const Wide product = static_cast<Wide>(a) * b;
  const bool below = product % c != 0 && product < 0;
  const Wide quotient = product / c - (below ? 1 : 0);
  return static_cast<int64_t>(std::clamp(quotient, -kLimit, kLimit));
}

constexpr int64_t kUnknownWidthNs = 1000;

std::vector<ClockPoint> metadata_points(const HostMetadata& metadata) {
  const int64_t width = metadata.clock_uncertainty_ns;
  const int64_t half = (width + 1) / 2;
  const ClockPoint start{metadata.start_monotonic_ns + width / 2,
                         metadata.start_realtime_ns,
                         half};
  // The stop bracket's own width is not in the file; the start's stands for it,
  // and may well be less than it was.
  const ClockPoint stop{metadata.stop_monotonic_ns - half,
                        metadata.stop_realtime_ns,
                        half + kUnknownWidthNs};
  if (stop.host_ns <= start.host_ns) {
    return {start};
  }
  return {start, stop};
}

std::vector<ClockPoint> line_points(const std::vector<HostClock>& clocks) {
  std::vector<ClockPoint> points;
  for (const HostClock& clock : clocks) {
    points.push_back({clock.monotonic_ns,
                      clock.realtime_ns,
                      (clock.uncertainty_ns + 1) / 2});
  }
  std::stable_sort(points.begin(),
                   points.end(),
                   [](const ClockPoint& a, const ClockPoint& b) {
                     return a.host_ns < b.host_ns;
                   });
  const auto same = [](const ClockPoint& a, const ClockPoint& b) {
    return a.host_ns == b.host_ns;
  };
  points.erase(std::unique(points.begin(), points.end(), same), points.end());
  return points;
}

}  // namespace

ClockRelation::ClockRelation(std::string source, std::vector<ClockPoint> points)
    : source_(std::move(source)), points_(std::move(points)) {
  measure();
}

void ClockRelation::measure() {
  int64_t widest = 0;
  int64_t largest_change = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    widest = std::max(widest, points_[i].half_width_ns);
    if (i == 0) {
      continue;
    }
    const ClockPoint& from = points_[i - 1];
    const ClockPoint& to = points_[i];
    const int64_t change = offset_of(to) - offset_of(from);
    const int64_t slew = scale(to.host_ns - from.host_ns, kSlewPpm, 1'000'000);
    const int64_t allowed = slew + 2 * (from.half_width_ns + to.half_width_ns);
    if (std::llabs(change) > allowed) {
      steps_.push_back({from.host_ns, to.host_ns, change});
    } else {
      largest_change = std::max<int64_t>(largest_change, std::llabs(change));
    }
  }
  uncertainty_ns_ = widest + (largest_change + 1) / 2;
}

int64_t ClockRelation::offset_ns() const {
  return offset_of(points_.front());
}

int64_t ClockRelation::to_trace(int64_t host_ns) const {
  const auto after = std::upper_bound(
      points_.begin(),
      points_.end(),
      host_ns,
      [](int64_t value, const ClockPoint& p) { return value < p.host_ns; });
  const bool outside = after == points_.begin() || after == points_.end();
  if (outside && !straight_) {
    return host_ns + offset_of(after == points_.begin() ? points_.front()
                                                        : points_.back());
  }
  const ClockPoint& from = straight_ ? points_.front() : *std::prev(after);
  const ClockPoint& to = straight_ ? points_.back() : *after;
  const int64_t change = offset_of(to) - offset_of(from);
  return host_ns + offset_of(from) +
         scale(host_ns - from.host_ns, change, to.host_ns - from.host_ns);
}

ClockRelation ClockRelation::from_offset(int64_t offset_ns) {
  return {"offset", {{0, offset_ns, 0}}};
}

ClockRelation ClockRelation::from_anchors(ClockPoint first, ClockPoint second) {
  ClockRelation line("anchors", {first, second});
  line.straight_ = true;
  line.steps_.clear();
  line.uncertainty_ns_ = 0;
  return line;
}

std::vector<ClockPoint> calibration_points(
    const HostMetadata& metadata, const std::vector<HostClock>& clocks) {
  std::vector<ClockPoint> points = line_points(clocks);
  return points.size() < 2 ? metadata_points(metadata) : points;
}

// Linux slews MONOTONIC and REALTIME together, so their difference only changes
// when the wall clock is set. Where every sample's bracket admits one and the
// same difference, that is what it is, and better known than by any one sample;
// a line through all of them would only follow their jitter.
ClockRelation realtime_relation(const HostMetadata& metadata,
                                const std::vector<HostClock>& clocks) {
  std::vector<ClockPoint> points = calibration_points(metadata, clocks);
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const ClockPoint& point : points) {
    least = std::max(least, offset_of(point) - point.half_width_ns);
    most = std::min(most, offset_of(point) + point.half_width_ns);
  }
  if (least <= most) {
    const int64_t offset = least + (most - least) / 2;
    const int64_t at = points.front().host_ns;
    points = {{at, at + offset, (most - least + 1) / 2}};
  }
  return {"realtime", std::move(points)};
}

}  // namespace shp
