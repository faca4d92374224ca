// What merge-dir says of its work: lines for people, one JSON object for
// programs. Pure.
#pragma once

#include <string>

#include "cli/trace/merge_dir.h"

namespace shp {

// Lines for standard output: one a trace, then host files that met none.
std::string report_lines(const MergeReport& report, bool dry_run);

// Lines for standard error without the program's name: failures and warnings.
std::vector<std::string> report_problems(const MergeReport& report);

std::string report_json(const MergeReport& report, bool dry_run);

}  // namespace shp
