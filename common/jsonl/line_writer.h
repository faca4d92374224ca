// LineWriter: the lines of a host file (span_format.h) into a buffer that goes
// to a sink whenever it is full. One thread (a session's, in shpd).
//
// A span line is the daemon's inner loop: what does not change between two
// spans of a thread or of a name is text already (ThreadText, span_name_text),
// the id is a decimal that counts itself up, and the rest is integers.
//
// A sink that fails makes the writer `failed()`: it drops everything from then
// on, so callers need to look only when they commit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/jsonl/span_format.h"

namespace shp {

class LineSink {
 public:
  virtual ~LineSink() = default;
  // Takes all bytes, or fails for good.
  [[nodiscard]] virtual bool write(std::string_view bytes) = 0;
};

// `,"pid":7,"tid":7,"name":`, once a thread.
struct ThreadText {
  static constexpr size_t kMaxBytes = 64;
  char bytes[kMaxBytes] = {};
  uint32_t size = 0;
};
[[nodiscard]] ThreadText span_thread_text(int64_t pid, uint32_t tid);

// `"step","start_ns":`, once a name. Bytes that are not UTF-8 become U+FFFD.
void append_span_name_text(std::string_view name, std::string* out);

// When a span was, in the file's clock.
struct SpanTimes {
  int64_t start_ns;
  int64_t duration_ns;
};

class LineWriter {
 public:
  static constexpr size_t kBufferBytes = 256U << 10;

  explicit LineWriter(LineSink& sink);

  // Goes on in a file that holds so many lines of each type already.
  void go_on_after(uint64_t spans, uint64_t instants, uint64_t counters);

  // A span line with args {}.
  void span(const ThreadText& thread,
            std::string_view name_text,
            SpanTimes times);
  // With args that are unchecked JSON text of a client. False: they were bad,
  // the line has {}.
  bool span(const ThreadText& thread,
            std::string_view name_text,
            SpanTimes times,
            std::string_view args);

  // A mark; as span() with args, which may be empty: {}.
  bool instant(const ThreadText& thread,
               std::string_view name_text,
               int64_t time_ns,
               std::string_view args);
  // A value at a time; it must be finite.
  void counter(const ThreadText& thread,
               std::string_view name_text,
               int64_t time_ns,
               double value);

  void thread(uint32_t tid, std::string_view name);
  void clock(const ClockSample& sample);
  void open_span(uint32_t tid, std::string_view name_text, int64_t start_ns);

  // Everything so far to the sink. False when it or an earlier one failed.
  bool flush();
  bool failed() const { return failed_; }
  uint64_t spans() const { return spans_; }
  uint64_t instants() const { return instants_; }
  uint64_t counters() const { return counters_; }

 private:
  char* room(size_t bytes);
  void take(const char* end) {
    used_ = static_cast<size_t>(end - buffer_.get());
  }
  char* span_head(char* at,
                  const ThreadText& thread,
                  std::string_view name_text,
                  SpanTimes times);
  void count_id_up();
  void start_mark(std::string_view type,
                  const ThreadText& thread,
                  std::string_view name_text,
                  int64_t time_ns);
  void text(std::string_view bytes);

  LineSink& sink_;
  std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
  bool failed_ = false;
  uint64_t spans_ = 0;
  uint64_t instants_ = 0;
  uint64_t counters_ = 0;
  // The next id's digits, at the end of a fixed field.
  char id_[24];
  uint32_t id_first_;
  std::string scratch_;
};

// Everything that line 1 says (span_format.h), ready to be written.
struct Losses {
  uint64_t unfinished = 0;
  uint64_t overflow = 0;
  uint64_t outside = 0;
  uint64_t bad_name = 0;
  uint64_t reentrant = 0;
  uint64_t no_ring = 0;
  uint64_t sum() const {
    return unfinished + overflow + outside + bad_name + reentrant + no_ring;
  }
};

struct OpenSpanEntry {
  uint32_t tid;
  std::string name_text;  // of append_span_name_text
  int64_t start_ns;
};

struct HostFileMetadata {
  std::string session_id;
  int64_t pid = 0;
  std::string hostname;
  ClockSample start;
  ClockSample stop;
  ClockKind clock_kind = ClockKind::kMonotonic;
  uint64_t written_spans = 0;
  uint64_t written_instants = 0;
  uint64_t written_counters = 0;
  uint64_t dropped_marks = 0;  // instants and counter values
  Losses dropped;
  uint64_t bad_args = 0;
  uint64_t names_lost = 0;
  uint64_t broken_rings = 0;  // left out when 0
  bool complete = false;
  std::string_view end_reason;
  int exit_code = -1;    // left out when negative
  int exit_signal = -1;  // left out when negative
  std::string argv;      // NUL-ended arguments
  int64_t ppid = 0;
  int64_t host_pid = 0;
  int64_t uid = 0;
  uint64_t pid_namespace = 0;
  std::string boot_id;
};

// Line 1, exactly kMetadataLineBytes with its "\n". argv and open spans are cut
// to what fits; session id and hostname must fit (kMaxSessionIdBytes).
inline constexpr size_t kMaxSessionIdBytes = 512;
inline constexpr size_t kMaxHostnameBytes = 255;
[[nodiscard]] std::string metadata_line(
    const HostFileMetadata& metadata,
    const std::vector<OpenSpanEntry>& open_spans);

}  // namespace shp
