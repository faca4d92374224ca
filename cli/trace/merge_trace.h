// One trace's way through merge-dir: scanned, classified, matched, spliced.
//
// Used by merge_dir.cpp, one call a trace, on any of its worker threads; the
// host files are shared and constant.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/trace/ascend.h"
#include "cli/trace/classify.h"
#include "cli/trace/emit_spans.h"
#include "cli/trace/host_reader.h"
#include "cli/trace/merge_dir.h"
#include "cli/trace/trace_file.h"

namespace shp {

// A host file of the trace's, and how its spans are placed.
struct PlannedHost {
  const HostSummary* host = nullptr;
  const TraceProcess* process = nullptr;  // of the job's scan
  ClockRelation relation;
};

struct TraceJob {
  std::string path;
  TraceReport report;
  ScannedTrace scanned;
  TraceClass decided;
  AscendCapture ascend;           // only of Ascend traces
  std::vector<PlannedHost> plan;  // one process after the other
};

// Whether spans are to go into the trace: it has no reason why not (yet).
bool is_open(const TraceJob& job);
void end_job(TraceJob& job, TraceOutcome outcome, std::string reason);

// Chooses host files and clocks of a scanned trace (plan_trace.cpp); one that
// gets none has a reason then.
void plan_job(TraceJob& job,
              const std::vector<HostSummary>& hosts,
              const MergeOptions& options);

// Calls emit(planned, rows) for each host file of the plan, `rows` being those
// beside the ones that its process has; stops at the first Error.
using EmitPlanned = std::function<Status(const PlannedHost&, EmitProcess&)>;
Status for_planned(const TraceJob& job, const EmitPlanned& emit);

// Scans and plans; reads the trace and nothing else.
void look_at_job(TraceJob& job,
                 const std::vector<HostSummary>& hosts,
                 const MergeOptions& options);

// All of it: afterwards the trace is merged, or as it was with a reason.
void merge_job(TraceJob& job,
               const std::vector<HostSummary>& hosts,
               const MergeOptions& options);

}  // namespace shp
