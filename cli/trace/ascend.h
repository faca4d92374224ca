// Ascend's torch_npu: how the times in a capture's trace_view.json relate to
// the host's clocks, from the metadata that lies around it.
//
//   trace_ns = MONOTONIC_RAW ns + D
//   D = REALTIME - MONOTONIC_RAW at the start of PROF_*, when the device was
//       profiled, else REALTIME - MONOTONIC (not RAW) at the end
//
// read_ascend_capture() looks at the files; the rest is pure. Sources and the
// fields' meanings: torch_npu's analysis/_profiler_config.py, msprof's
// start_info. The files are not trusted: what is odd counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/trace/clock_align.h"
#include "cli/trace/host_reader.h"
#include "cli/trace/scan.h"
#include "common/base/result.h"

namespace shp {

struct AscendCapture {
  bool has_profiler_info = false;
  std::optional<bool> device_profiled;  // whether activities name the NPU
  std::optional<int64_t> start_raw_ns;  // MONOTONIC_RAW at start_trace
  std::optional<int64_t> end_realtime_ns;
  std::optional<int64_t> end_monotonic_ns;
  // The pair of PROF_*/host/start_info (or device_n/start_info.n).
  std::optional<int64_t> prof_realtime_ns;
  std::optional<int64_t> prof_raw_ns;
  std::string host_name;
  std::optional<int64_t> rank;
};

// Looks beside the trace and one directory up, where torch_npu puts it.
AscendCapture read_ascend_capture(const std::string& trace_path);

// `device_rows`: the trace itself has rows of CANN or the hardware. `window` is
// the trace's. The Error says why the relation cannot be known.
Result<ClockRelation> ascend_relation(const AscendCapture& capture,
                                      bool device_rows,
                                      const TimeWindow& window,
                                      const HostSummary& host);

}  // namespace shp
