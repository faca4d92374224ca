// Reads one closed host file (span_format.h): ours and the predecessor's.
//
// For `shp export`, `shp merge-dir` and tests. open_host_file() reads and
// checks the metadata line; next() gives one span after the other and, at the
// end of the file, checks that it held as many spans as its metadata says.
// Memory is bounded by the longest line. The file is not trusted: the first
// thing that is wrong ends the reading with one Error, "PATH: line N: what".
//
// One reader belongs to one thread. A span's texts point into the reader's
// buffer and last until the next call of next().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/jsonl/host_types.h"

namespace shp {

// A line of type "clock": REALTIME and RAW at `monotonic_ns`, each off by half
// of `uncertainty_ns` at most.
struct HostClock {
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
  int64_t uncertainty_ns = 0;
  std::optional<int64_t> monotonic_raw_ns;
};

struct HostOpenSpan {
  int64_t tid = 0;
  int64_t start_ns = 0;
  std::string name;  // JSON string, with its quotes
};

class SpanCheck;
struct ThreadMemo;

class LineReader {
 public:
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  const HostMetadata& metadata() const { return *metadata_; }

  // From here on next() gives the marks instead of the spans; both are checked.
  void give_marks() { marks_ = true; }

  // False at the end of the file. After an Error the reader is of no more use.
  Result<bool> next(HostSpan& span);

  // What the lines read so far said; whole once next() was false.
  const std::map<int64_t, std::string>& thread_names() const {
    return thread_names_;
  }
  const std::vector<HostClock>& clocks() const { return clocks_; }
  const std::vector<HostOpenSpan>& open_spans() const { return open_spans_; }

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  friend Result<LineReader> open_host_file(UniqueFd fd, std::string name);
  LineReader(UniqueFd fd, std::string name);

  Result<bool> next_line(std::string_view& line);
  Status read_metadata();
  Status take_other_line(std::string_view line);
  Result<bool> take_mark(std::string_view line, HostSpan& mark);
  Result<bool> take_line(std::string_view line, HostSpan& span);
  tl::unexpected<Error> fail(std::string_view what) const;

  UniqueFd fd_;
  std::string name_;
  std::string buffer_;
  size_t begin_ = 0;  // of the bytes in buffer_ that are not consumed
  size_t end_ = 0;
  bool at_eof_ = false;
  bool marks_ = false;
  uint64_t line_ = 0;
  uint64_t bytes_read_ = 0;
  std::unique_ptr<HostMetadata> metadata_;
  std::unique_ptr<SpanCheck> check_;
  std::unique_ptr<ThreadMemo> memo_;
  std::map<int64_t, std::string> thread_names_;
  std::vector<HostClock> clocks_;
  std::vector<HostOpenSpan> open_spans_;
};

// `name` is the path for messages.
Result<LineReader> open_host_file(UniqueFd fd, std::string name);
Result<LineReader> open_host_file(const std::string& path);

}  // namespace shp
