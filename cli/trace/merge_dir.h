// `shp merge-dir`: puts the spans of a capture's host files into its traces.
//
// Finds, scans, decides and splices (the headers beside this one, in that
// order); several traces at once. One that fails does not stop the others, and
// is left as it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/trace/clock_options.h"
#include "cli/trace/scan.h"
#include "common/base/result.h"

namespace shp {

struct MergeOptions {
  std::string host_dir;
  std::string torch_dir;
  std::string output_dir;  // empty: in place
  std::string combine;     // not empty: all into this one, see combine.h
  PidMap pid_map;
  GivenClocks clocks;
  bool dry_run = false;
};

// How a host file's times became a trace's.
struct MergedClock {
  std::string source;
  int64_t offset_ns = 0;
  std::optional<int64_t> uncertainty_ns;  // none: given by the user
};

struct MergedHost {
  std::string path;
  int64_t pid = 0;  // of the trace's process
  MergedClock clock;
};

enum class TraceOutcome { kMerged, kSkipped, kFailed };

struct TraceReport {
  std::string name;  // relative to the Torch directory
  TraceOutcome outcome = TraceOutcome::kSkipped;
  std::string reason;  // unless merged
  std::string output;  // the file that was written
  std::optional<int64_t> rank;
  uint64_t spans = 0;
  uint64_t async = 0;
  uint64_t marks = 0;  // instants and counter values
  uint64_t unfinished = 0;
  uint64_t replaced_events = 0;  // of an earlier run
  std::vector<MergedHost> hosts;
  std::vector<std::string> warnings;
  // What the scan made of it; `kind` is empty when it is no trace.
  std::string kind;
  std::optional<int64_t> base_ns;
  std::vector<int64_t> host_pids;
  TimeWindow window;
};

struct HostReport {
  std::string path;
  int64_t pid = 0;
  std::string hostname;
  std::string problem;  // not empty: the file is not usable
  bool used = false;
};

struct MergeReport {
  std::vector<TraceReport> traces;
  std::vector<HostReport> hosts;

  size_t count(TraceOutcome outcome) const;
  // No trace and no host file failed, and some trace got its spans.
  bool ok() const;
};

// An Error is one that concerns the whole call; everything else is in the
// report. `on_progress` may be null; it is called with traces done and in all.
using OnProgress = void (*)(size_t done, size_t all);
Result<MergeReport> merge_dir(const MergeOptions& options,
                              OnProgress on_progress);

}  // namespace shp
