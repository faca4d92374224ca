// The first of merge-dir's three steps: one pass over the bytes of a file that
// may be a trace. It finds where the events array begins and ends, what decides
// the time base (at either end of the file), which processes there are, the
// time window, and the events that an earlier run of ours put in.
//
// Nothing is decided here (see classify.h, match.h) and nothing is kept of the
// events themselves: memory is bounded by the number of threads in the trace.
// The file is not trusted; what viewers open is taken (loose_json.h).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/trace/byte_source.h"
#include "cli/trace/event_fields.h"
#include "common/base/result.h"

namespace shp {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A span of the file's own time: ts as ns, its base not added.
struct TimeWindow {
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = std::numeric_limits<int64_t>::min();

  bool empty() const { return begin > end; }
  void add(int64_t from, int64_t to) {
    begin = from < begin ? from : begin;
    end = to > end ? to : end;
  }
};

struct TraceThread {
  std::optional<int64_t> tid;         // when it is a number or a quoted one
  std::optional<int64_t> sort_index;  // from its thread_sort_index event
};

struct TraceProcess {
  std::string pid_token;       // as it stands in the file, quotes included
  std::optional<int64_t> pid;  // when it is a number or a quoted one
  std::string name;            // from process_name
  std::string label;           // its last process_labels
  bool labelled_cpu = false;
  bool labelled_gpu = false;
  uint64_t host_events = 0;  // with a category that only host rows have
  uint64_t events = 0;       // all but metadata events
  TimeWindow window;         // of its events that have a time but 0
  std::unordered_map<std::string, TraceThread> threads;  // by tid token
};

enum class TraceForm { kObject, kArray };

struct TraceScan {
  TraceForm form = TraceForm::kObject;
  uint64_t bytes = 0;  // of the inflated file

  // Not empty: the file is JSON but no trace, and why; nothing else counts.
  std::string not_a_trace;

  // The events array. Ours go to `insert_at`: behind the last event that is
  // not ours, or behind "[" when there is none.
  uint64_t insert_at = 0;
  bool has_events = false;  // others than ours
  uint64_t events = 0;      // others than ours

  // Our earlier events, with the commas that came with them.
  std::vector<ByteRange> own;
  uint64_t own_events = 0;

  // Top-level members.
  std::optional<int64_t> base_ns;
  bool has_odd_base = false;  // a base that is no integer
  bool made_by_export = false;
  bool starts_empty = false;  // its first event is {}
  std::string host_name;
  std::optional<int64_t> rank;

  // How times are written.
  uint64_t quoted_times = 0;
  uint64_t plain_times = 0;
  TimeWindow window;                       // of all events
  std::optional<int64_t> iteration_start;  // "Iteration Start: …"
  std::optional<int64_t> window_end;       // "Record Window End"

  std::vector<TraceProcess> processes;
};

// Called for every event that is not ours, with its text; not for one that is
// longer than a window.
using OnEvent =
    std::function<void(const EventFields& fields, std::string_view text)>;

// The Error says at which byte of the (inflated) file it is no JSON.
Result<TraceScan> scan_trace(ByteSource& source, const OnEvent& on_event = {});

}  // namespace shp
