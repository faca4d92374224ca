// `shp export`: host files of several processes and hosts as one Chrome trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace shp {

struct ExportReport {
  uint64_t files = 0;
  uint64_t spans = 0;
  uint64_t marks = 0;  // instants and counter values
  uint64_t async = 0;
  std::vector<std::string> warnings;
};

// `inputs` are files, or directories whose *.jsonl (and SQLite files) are taken
// at any depth. `output` ends in .json or .json.gz, or is "-" for stdout.
Result<ExportReport> export_trace(const std::vector<std::string>& inputs,
                                  const std::string& output);

}  // namespace shp
