// Reads the lines that shpd adds to a session's file while it writes it
// (NAME.jsonl.pending), for `shp top`.
//
// Nothing is checked but what is needed to count: the file is not whole yet. A
// line that is not all there waits for the next call; one that does not read is
// passed over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/jsonl/host_types.h"

namespace shp {

class LiveFile {
 public:
  enum class From { kStart, kEnd };  // kEnd: what is in it is passed over

  static Result<LiveFile> open(const std::string& path, From from);

  // Calls `take` for each span and mark that came since, in their order.
  using Take = std::function<void(const HostSpan&)>;
  Status read(const Take& take);

 private:
  explicit LiveFile(UniqueFd fd) : fd_(std::move(fd)) {}

  void take_lines(const Take& take);
  Status follow_cut();

  UniqueFd fd_;
  int64_t offset_ = 0;    // of what is read next
  std::string rest_;      // read, and not taken yet
  bool in_line_ = false;  // what comes first is the end of a line
};

}  // namespace shp
