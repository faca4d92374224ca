#include "common/base/tick_clock.h"

#include <algorithm>
#include <iterator>

namespace shp {
namespace {

// Two readings' noise: what is foretold within it is right.
constexpr int64_t kNoiseNs = 60;
constexpr int64_t kAnchorGapNs = 2'000'000'000;
// From this many pieces on, new ones keep a distance that doubles with each
// further such number, so that the memory of any session stays below 2 MiB.
constexpr size_t kFreePieces = 16384;
constexpr uint64_t kFirstGapNs = 100'000'000;

}  // namespace

TickClock::TickClock(ClockKind kind, const ClockSample& first)
    : identity_(kind == ClockKind::kMonotonic),
      end_ticks_(first.ticks),
      anchor_{first.ticks, first.monotonic_ns},
      next_anchor_(anchor_) {
  pieces_.push_back({first.ticks, first.monotonic_ns, uint64_t{1} << kShift});
}

uint64_t TickClock::slope_of(Point from, Point to, uint64_t otherwise) {
  if (to.ticks <= from.ticks || to.ns <= from.ns) {
    return otherwise;
  }
  const auto slope = (static_cast<Uint128>(to.ns - from.ns) << kShift) /
                     (to.ticks - from.ticks);
  return static_cast<uint64_t>(
      std::clamp<Uint128>(slope, kMinSlope, kMaxSlope));
}

int64_t TickClock::tolerance_ns(const ClockSample& sample) const {
  const Piece window{0, 0, pieces_.back().slope};
  const uint64_t half = std::min<uint64_t>(sample.tick_window / 2, 1U << 20);
  return kNoiseNs + along(window, half);
}

void TickClock::add(const ClockSample& sample) {
  if (sample.ticks <= end_ticks_) {
    return;
  }
  const int64_t error =
      sample.monotonic_ns - along(pieces_.back(), sample.ticks);
  const int64_t tolerance = tolerance_ns(sample);
  const bool foretold = error <= tolerance && -error <= tolerance;
  if (!identity_ && (!has_slope_ || !foretold)) {
    bend(sample);
  }
  end_ticks_ = sample.ticks;
  note_anchor({sample.ticks, sample.monotonic_ns});
}

// A piece from the end of what may have been converted to the calibration,
// then one from there on with the slope of the long base.
void TickClock::bend(const ClockSample& sample) {
  const Point end{end_ticks_, along(pieces_.back(), end_ticks_)};
  const Point goal{sample.ticks, std::max(sample.monotonic_ns, end.ns)};
  if (static_cast<uint64_t>(goal.ns - pieces_.back().ns) < min_gap_ns_) {
    return;
  }
  const uint64_t before = pieces_.back().slope;
  const Piece bridge{end.ticks, end.ns, slope_of(end, goal, kMinSlope)};
  if (pieces_.back().ticks == end.ticks) {
    pieces_.back() = bridge;
  } else {
    pieces_.push_back(bridge);
  }
  const Point base = has_slope_ ? anchor_ : end;
  pieces_.push_back(
      {goal.ticks, along(bridge, goal.ticks), slope_of(base, goal, before)});
  has_slope_ = true;
  if (pieces_.size() >= kFreePieces) {
    const size_t level = std::min<size_t>(pieces_.size() / kFreePieces - 1, 30);
    min_gap_ns_ = kFirstGapNs << level;
  }
}

void TickClock::note_anchor(Point point) {
  if (point.ns - next_anchor_.ns >= kAnchorGapNs) {
    anchor_ = next_anchor_;
    next_anchor_ = point;
  }
}

int64_t TickClock::in_older_piece(uint64_t ticks) const {
  const auto after = std::upper_bound(
      pieces_.begin(),
      pieces_.end(),
      ticks,
      [](uint64_t value, const Piece& piece) { return value < piece.ticks; });
  if (after != pieces_.begin()) {
    return along(*std::prev(after), ticks);
  }
  const Piece& first = pieces_.front();
  return first.ns - along({0, 0, first.slope}, first.ticks - ticks);
}

}  // namespace shp
