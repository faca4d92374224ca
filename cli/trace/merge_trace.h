// One trace's way through merge-dir: scanned, classified, matched, spliced.
//
// Used by merge_dir.cpp, one call a trace, on any of its worker threads; the
// host files are shared and constant.
#pragma once

#include <string>
#include <vector>

#include "cli/trace/ascend.h"
#include "cli/trace/classify.h"
#include "cli/trace/emit_spans.h"
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
  // What places spans in it: filled by plan_job().
  std::vector<const HostSummary*> hosts;
  std::vector<ClockRelation> relations;
};

// Whether spans are to go into the trace: it has no reason why not (yet).
bool is_open(const TraceJob& job);
void end_job(TraceJob& job, TraceOutcome outcome, std::string reason);

// Chooses host files and clocks of a scanned trace (plan_trace.cpp); one that
// gets none has a reason then.
void plan_job(TraceJob& job,
              const std::vector<HostSummary>& hosts,
              const MergeOptions& options);

// The host's process that the plan chose; null when there is none.
const TraceProcess* planned_process(const TraceJob& job);

// Rows for spans beside those that the process has.
EmitProcess rows_beside(const TraceProcess& process);

// Scans and plans; reads the trace and nothing else.
void look_at_job(TraceJob& job,
                 const std::vector<HostSummary>& hosts,
                 const MergeOptions& options);

// All of it: afterwards the trace is merged, or as it was with a reason.
void merge_job(TraceJob& job,
               const std::vector<HostSummary>& hosts,
               const MergeOptions& options);

}  // namespace shp
