// Deciding, part one: what a scanned file is, and what its times mean.
//
// Pure. The rules are the decision table of the format notes: a Kineto object
// with a base, one with absolute times, one without either; an Ascend array;
// files that are no traces or that somebody else has merged already.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/trace/scan.h"

namespace shp {

enum class Verdict {
  kTrace,   // spans can go in
  kSkip,    // not ours to touch; `reason` says why
  kRefuse,  // a trace that cannot be placed or trusted; `reason` says why
};

// How the file writes a time of ours, see event_text.h.
struct TimeStyle {
  int64_t base_ns = 0;   // what "ts" is relative to
  bool quoted = false;   // as a string
  int64_t grain_ns = 1;  // times are multiples of it
};

struct TraceClass {
  Verdict verdict = Verdict::kTrace;
  std::string reason;
  bool ascend = false;
  bool device_rows = false;  // Ascend: has rows of CANN or the hardware
  // False: `style.base_ns` is 0 only for want of a better one, and only the
  // clock options can place a span.
  bool base_known = false;
  std::string base_reason;  // why not
  const char* kind = "";    // "kineto base", "kineto absolute", "ascend"
  TimeStyle style;
  TimeWindow window;          // base added: CLOCK_REALTIME ns when known
  std::vector<size_t> hosts;  // indices into TraceScan::processes
};

TraceClass classify(const TraceScan& scan);

}  // namespace shp
