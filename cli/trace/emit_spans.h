// Spans of host files as events of one trace: reads, orders, places, lays out,
// writes. What export and merge-dir have in common.
//
// One emitter serves one output, on one thread. Events are joined by ",\n";
// whether one goes before the first is the caller's word.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/trace/clock_align.h"
#include "cli/trace/event_text.h"
#include "cli/trace/host_reader.h"
#include "cli/trace/layout.h"
#include "cli/trace/scan.h"
#include "cli/trace/span_sorter.h"
#include "cli/trace/text_sink.h"

namespace shp {

// One process of the trace that gets spans.
struct EmitProcess {
  explicit EmitProcess(int64_t pid) : chooser(pid) {}

  std::string pid_token;
  TidChooser chooser;                     // knows the rows that are taken
  std::map<int64_t, int64_t> sort_index;  // of real threads, where known
  // Merging: spans of a thread go to a row of their own beside the thread's.
  bool own_rows = false;
  std::map<int64_t, int64_t> rows;  // real tid to the row's tid
};

// Where a file's spans go.
struct EmitPlace {
  // Null: the file's own wall clock, as its calibrations say (or, where they
  // tell of a step, as the first of them says).
  const ClockRelation* relation = nullptr;
  // Null: no span is left out. Trace ns; only with a relation.
  const TimeWindow* window = nullptr;
};

struct EmitCounts {
  uint64_t spans = 0;
  uint64_t async = 0;       // of those, the ones that do not nest
  uint64_t unfinished = 0;  // open spans, shown as marks
  uint64_t marks = 0;       // instants and counter values
  std::vector<std::string> warnings;
};

class SpanEmitter {
 public:
  SpanEmitter(TextSink& sink,
              TimeStyle style,
              std::string spill_directory,
              bool comma_first);

  // All spans of `path`, or those that touch the window.
  Status emit_file(const std::string& path,
                   EmitProcess& process,
                   const EmitPlace& place);

  // One metadata event.
  Status emit_metadata(std::string_view pid_token,
                       int64_t tid,
                       std::string_view what,
                       std::string_view key,
                       std::string_view value);

  // Async events are tied by id all over a file.
  void start_async_ids_at(uint64_t id) { next_async_id_ = id; }

  const EmitCounts& counts() const { return counts_; }

 private:
  struct Placing;

  Status put_events();
  Status collect(HostReader& reader,
                 const EmitPlace& place,
                 SpanSorter& sorter);
  Status place_all(SpanSorter& sorter, Placing& placing);
  ClockRelation wall_clock(const HostReader& reader, const std::string& path);
  int64_t row_of(int64_t tid, Placing& placing);
  void emit_span(const SortedSpan& span, int64_t row, Placing& placing);
  void emit_open_spans(Placing& placing);
  void emit_mark(const HostSpan& mark, Placing& placing);
  Status emit_marks(const std::string& path, Placing& placing);
  void separate();

  TextSink& sink_;
  TimeStyle style_;
  std::string spill_directory_;
  bool need_comma_;
  std::string text_;  // events not yet given to the sink
  uint64_t next_async_id_ = 1;
  EmitCounts counts_;
};

}  // namespace shp
