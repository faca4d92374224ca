// `shp merge-dir --combine OUT`: all traces of a capture and all its host files
// as one trace on one timeline, ranks and processes kept apart. The traces
// themselves stay as they are.
//
// Called once by merge_dir.cpp, after every trace was scanned and planned.
#pragma once

#include <string>
#include <vector>

#include "cli/trace/merge_trace.h"
#include "common/base/result.h"

namespace shp {

// Traces that are open get their spans and an outcome; those that are traces
// and met no host file go in without. Host files that met no trace become
// processes of their own.
Status combine_traces(std::vector<TraceJob>& jobs,
                      const std::vector<HostSummary>& hosts,
                      const std::string& output);

}  // namespace shp
