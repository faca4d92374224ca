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

namespace shp {

struct HostMetadata {
  std::string session_id;
  std::string hostname;
  int64_t pid = 0;
  int64_t start_monotonic_ns = 0;
  int64_t start_realtime_ns = 0;
  int64_t clock_uncertainty_ns = 0;
  int64_t stop_monotonic_ns = 0;
  int64_t stop_realtime_ns = 0;
  int64_t written_spans = 0;
  int64_t dropped_spans = 0;
  bool complete = false;
  // Keys that the predecessor does not write.
  std::optional<int64_t> start_monotonic_raw_ns;
  std::optional<int64_t> stop_monotonic_raw_ns;
  std::optional<int64_t> pid_namespace;
  std::optional<int64_t> host_pid;  // in the daemon's pid namespace
  std::string boot_id;
  std::string end_reason;
  std::vector<std::string> argv;
  std::map<std::string, int64_t> dropped;  // by cause, those above 0
  int64_t bad_args = 0;
};

struct HostSpan {
  int64_t id = 0;
  int64_t tid = 0;
  int64_t start_ns = 0;  // CLOCK_MONOTONIC
  int64_t duration_ns = 0;
  std::string_view name;  // JSON string, with its quotes
  std::string_view args;  // JSON object
};

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

class SpanIds;  // which ids were seen

class LineReader {
 public:
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  const HostMetadata& metadata() const { return metadata_; }

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
  Result<bool> take_line(std::string_view line, HostSpan& span);
  Status check_span(const HostSpan& span, int64_t pid);
  Status check_end() const;
  tl::unexpected<Error> fail(std::string_view what) const;

  UniqueFd fd_;
  std::string name_;
  std::string buffer_;
  size_t begin_ = 0;  // of the bytes in buffer_ that are not consumed
  size_t end_ = 0;
  bool at_eof_ = false;
  uint64_t line_ = 0;
  uint64_t bytes_read_ = 0;
  int64_t spans_ = 0;
  HostMetadata metadata_;
  std::unique_ptr<SpanIds> ids_;
  std::map<int64_t, std::string> thread_names_;
  std::vector<HostClock> clocks_;
  std::vector<HostOpenSpan> open_spans_;
};

// `name` is the path for messages.
Result<LineReader> open_host_file(UniqueFd fd, std::string name);
Result<LineReader> open_host_file(const std::string& path);

}  // namespace shp
