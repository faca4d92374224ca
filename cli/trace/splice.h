// The last of merge-dir's three steps: the trace again, with our events in and
// our earlier ones out, every other byte as it was. gz stays gz, and its
// compressed bytes before the place of change are carried over as they are.
//
// One call works on one thread. Reads the scanned file, writes a new one.
#pragma once

#include <functional>

#include "cli/trace/text_sink.h"
#include "cli/trace/trace_file.h"
#include "common/base/result.h"

namespace shp {

// Writes our events to the sink, joined by ",\n", with one in front when the
// array has others (TraceScan::has_events).
using WriteEvents = std::function<Status(TextSink& sink)>;

// Where the new trace goes: a descriptor whose offset is behind the first
// `has_bytes` bytes, which are the old trace's already.
struct SpliceOutput {
  int fd = -1;
  uint64_t has_bytes = 0;
};

Status splice(int in,
              const ScannedTrace& trace,
              SpliceOutput out,
              const WriteEvents& write_events);

}  // namespace shp
