// TickClock: counter ticks to CLOCK_MONOTONIC nanoseconds, from calibrations
// that go on being added while a session runs. Pure arithmetic; one thread.
//
// The function is a chain of straight pieces. A calibration that the last piece
// foretold well enough only lengthens it; another one begins a new piece where
// the old one ended and leads it to the calibration. So the chain is continuous
// and never falls, what was converted once is converted the same for ever (two
// spans that nest in ticks nest in nanoseconds), and a long session on a steady
// counter needs few pieces.
//
// The contract that keeps this true: convert ticks only up to the last added
// calibration, so nothing is ever extrapolated. Ticks beyond are answered (the
// last piece goes on), ticks before the first calibration too.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/clock.h"

namespace shp {

__extension__ typedef unsigned __int128 Uint128;

class TickClock {
 public:
  // `kind` kMonotonic: ticks are nanoseconds already, and stay what they are.
  TickClock(ClockKind kind, const ClockSample& first);

  // Calibrations whose ticks are not beyond the last one's are ignored.
  void add(const ClockSample& sample);

  int64_t to_ns(uint64_t ticks) const {
    if (identity_) {
      return static_cast<int64_t>(ticks);
    }
    return ticks >= pieces_.back().ticks ? along(pieces_.back(), ticks)
                                         : in_older_piece(ticks);
  }

  uint64_t last_ticks() const { return end_ticks_; }
  size_t pieces() const { return pieces_.size(); }

 private:
  struct Piece {
    uint64_t ticks;  // where it begins
    int64_t ns;
    uint64_t slope;  // nanoseconds a tick, 2^-kShift
  };
  struct Point {
    uint64_t ticks;
    int64_t ns;
  };
  static constexpr int kShift = 48;
  // Kept between 1/2^16 and 2^15 ns a tick: counters of 30 kHz to 60 THz.
  static constexpr uint64_t kMinSlope = uint64_t{1} << 32;
  static constexpr uint64_t kMaxSlope = uint64_t{1} << 63;

  static int64_t along(const Piece& piece, uint64_t ticks) {
    const auto scaled = static_cast<Uint128>(ticks - piece.ticks) * piece.slope;
    constexpr Uint128 kHalf = Uint128{1} << (kShift - 1);
    return piece.ns + static_cast<int64_t>((scaled + kHalf) >> kShift);
  }
  static uint64_t slope_of(Point from, Point to, uint64_t otherwise);
  int64_t in_older_piece(uint64_t ticks) const;
  int64_t tolerance_ns(const ClockSample& sample) const;
  void bend(const ClockSample& sample);
  void note_anchor(Point point);

  bool identity_;
  bool has_slope_ = false;
  uint64_t end_ticks_;
  uint64_t min_gap_ns_ = 0;  // between new pieces, grows with their number
  std::vector<Piece> pieces_;
  // Two earlier calibrations, 2 s or more apart where there are such: the
  // long base from which a new piece's slope is taken.
  Point anchor_;
  Point next_anchor_;
};

}  // namespace shp
