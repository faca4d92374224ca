// The clocks of a session: what the daemon reads, said as the client would read
// it. A client in another time namespace has a CLOCK_MONOTONIC that is off by a
// constant from ours; its file and its Torch trace speak of its own.
//
// Pure but for now(); one thread.
#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace shp {

class SessionClock {
 public:
  // `client` came with the StartRequest, `ours` was read just after it came,
  // `early` some time before, for the counter's rate.
  SessionClock(ClockKind kind,
               const ClockSample& client,
               const ClockSample& ours,
               const ClockSample& early);

  // One whose shift was measured before.
  SessionClock(ClockKind kind, int64_t shift_ns)
      : kind_(kind), shift_ns_(shift_ns) {}

  // All clocks now, as the client sees them.
  [[nodiscard]] ClockSample now() const {
    return shifted(sample_clocks(kind_));
  }
  [[nodiscard]] ClockSample shifted(ClockSample sample) const;
  int64_t shift_ns() const { return shift_ns_; }

 private:
  ClockKind kind_;
  int64_t shift_ns_ = 0;
};

// Client's CLOCK_MONOTONIC minus ours at one instant; 0 when that is no more
// than the comparison's own error (1 ms).
[[nodiscard]] int64_t monotonic_shift_ns(ClockKind kind,
                                         const ClockSample& client,
                                         const ClockSample& ours,
                                         const ClockSample& early);

}  // namespace shp
