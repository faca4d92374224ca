#include "daemon/session_clock.h"

#include <cstdlib>

namespace shp {
namespace {

constexpr int64_t kSmallestShiftNs = 1'000'000;

// Ours at the counter value of `client`, by the rate between two of ours.
double ours_at(uint64_t ticks,
               const ClockSample& ours,
               const ClockSample& early) {
  const auto span_ticks = static_cast<double>(ours.ticks - early.ticks);
  const auto span_ns =
      static_cast<double>(ours.monotonic_ns - early.monotonic_ns);
  const double rate = span_ticks > 0 ? span_ns / span_ticks : 0;
  const auto behind =
      static_cast<double>(static_cast<int64_t>(ours.ticks - ticks));
  return static_cast<double>(ours.monotonic_ns) - behind * rate;
}

}  // namespace

int64_t monotonic_shift_ns(ClockKind kind,
                           const ClockSample& client,
                           const ClockSample& ours,
                           const ClockSample& early) {
  int64_t shift = 0;
  if (kind == ClockKind::kMonotonic) {
    // Ticks are the very clock that may be shifted: compare by REALTIME, which
    // has no namespaces.
    shift = (client.monotonic_ns - client.realtime_ns) -
            (ours.monotonic_ns - ours.realtime_ns);
  } else {
    shift = static_cast<int64_t>(static_cast<double>(client.monotonic_ns) -
                                 ours_at(client.ticks, ours, early));
  }
  return std::llabs(shift) > kSmallestShiftNs ? shift : 0;
}

SessionClock::SessionClock(ClockKind kind,
                           const ClockSample& client,
                           const ClockSample& ours,
                           const ClockSample& early)
    : kind_(kind), shift_ns_(monotonic_shift_ns(kind, client, ours, early)) {}

ClockSample SessionClock::shifted(ClockSample sample) const {
  sample.monotonic_ns += shift_ns_;
  sample.monotonic_raw_ns += shift_ns_;
  if (kind_ == ClockKind::kMonotonic) {
    sample.ticks += static_cast<uint64_t>(shift_ns_);
  }
  return sample;
}

}  // namespace shp
