// One host file, whatever it is kept in: closed JSONL, or a historical SQLite
// file of the predecessor. What export and merge-dir read spans from.
//
// One reader belongs to one thread; open_host_reader() tells the two apart by
// their first bytes. A span's texts last until the next call of next().
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/trace/clock_align.h"
#include "common/base/result.h"
#include "common/jsonl/line_reader.h"

namespace shp {

class HostReader {
 public:
  virtual ~HostReader() = default;
  virtual const HostMetadata& metadata() const = 0;
  // False at the end, when everything was checked.
  virtual Result<bool> next(HostSpan& span) = 0;
  // Whole once next() was false.
  virtual const std::map<int64_t, std::string>& thread_names() const = 0;
  virtual const std::vector<HostClock>& clocks() const = 0;
  virtual const std::vector<HostOpenSpan>& open_spans() const = 0;
};

Result<std::unique_ptr<HostReader>> open_host_reader(const std::string& path);
// One whose next() gives the file's instants and counters instead.
Result<std::unique_ptr<HostReader>> open_mark_reader(const std::string& path);

// What a whole reading of a host file told, without its spans.
struct HostSummary {
  std::string path;
  HostMetadata metadata;
  std::vector<HostClock> clocks;
  uint64_t spans = 0;
  // What its manifest adds, see manifest.h.
  std::optional<int64_t> rank;
  std::vector<ClockPoint> raw_samples;
};

// Reads and checks all of it.
Result<HostSummary> load_host_file(const std::string& path);

}  // namespace shp
