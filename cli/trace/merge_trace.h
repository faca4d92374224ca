// One trace's way through merge-dir: scanned, classified, matched, spliced.
//
// Used by merge_dir.cpp, one call a trace, on any of its worker threads; the
// host files are shared and constant.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/trace/ascend.h"
#include "cli/trace/classify.h"
#include "cli/trace/host_reader.h"
#include "cli/trace/merge_dir.h"
#include "cli/trace/trace_file.h"

namespace shp {

struct TraceJob {
  std::string path;
  TraceReport report;
  ScannedTrace scanned;
  TraceClass decided;
  AscendCapture ascend;  // only of Ascend traces
  // Filled by plan_trace() when spans are to go in: what places them.
  std::vector<const HostFile*> hosts;
  std::vector<ClockRelation> relations;
};

// Scans and classifies; what is no trace gets its outcome and reason.
void scan_job(TraceJob& job);

// Chooses host files and clocks; a trace that gets none has a reason then.
void plan_job(TraceJob& job,
              const std::vector<HostFile>& hosts,
              const MergeOptions& options);

// Writes the trace again with the spans in it.
void splice_job(TraceJob& job, const MergeOptions& options);

// Whether a job is still to be worked on.
bool is_open(const TraceJob& job);

}  // namespace shp
