// What a run leaves in its output directory: host files that are closed, and
// those that shpd is still writing. Files that lay there before are not ours.
//
// Used by `shp run`, on its main thread, from before the program starts until
// the summary is printed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace shp {

// The part of a host file's metadata line that a summary needs.
struct HostFile {
  std::string path;
  int64_t pid = 0;
  std::string program;  // argv, joined by spaces; may be empty
  uint64_t written_spans = 0;
  uint64_t dropped_spans = 0;
  std::map<std::string, uint64_t> dropped;  // by cause, without the zeros
  uint64_t bad_args = 0;
  uint64_t open_spans = 0;  // as far as the metadata line lists them
  bool complete = false;
  std::string end_reason;
};

[[nodiscard]] Result<HostFile> parse_metadata(std::string_view line);

class Capture {
 public:
  // Remembers what is in `directory` now.
  explicit Capture(std::string directory);

  // New since then, by name.
  [[nodiscard]] std::vector<std::string> closed() const;
  [[nodiscard]] std::vector<std::string> pending() const;
  [[nodiscard]] std::vector<std::string> traces() const;

  const std::string& directory() const { return directory_; }

 private:
  std::vector<std::string> fresh(bool (*wanted)(std::string_view)) const;

  std::string directory_;
  std::vector<std::string> before_;
};

[[nodiscard]] Result<HostFile> read_host_file(const std::string& path);

}  // namespace shp
