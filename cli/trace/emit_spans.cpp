#include "cli/trace/emit_spans.h"

#include <optional>

#include "common/jsonl/json_check.h"

namespace shp {
namespace {

constexpr size_t kFlushBytes = 64U << 10;

// In Python a row whose thread was never named still tells its number.
std::string row_label(int64_t tid,
                      const std::map<int64_t, std::string>& names,
                      bool own_row) {
  const auto named = names.find(tid);
  const bool known = named != names.end() && !named->second.empty();
  const std::string thread =
      known ? named->second + " (" + std::to_string(tid) + ")"
            : "thread " + std::to_string(tid);
  return json_quote(own_row ? "host spans: " + thread : thread);
}

bool touches(const TimeWindow& window, int64_t start_ns, int64_t end_ns) {
  return start_ns <= window.end && end_ns >= window.begin;
}

}  // namespace

// What is the same for all spans of one file.
struct SpanEmitter::Placing {
  const HostReader& reader;
  EmitProcess& process;
  const ClockRelation& relation;
  const TimeWindow* window;
  RowStack stack;
};

SpanEmitter::SpanEmitter(TextSink& sink,
                         TimeStyle style,
                         std::string spill_directory,
                         bool comma_first)
    : sink_(sink),
      style_(style),
      spill_directory_(std::move(spill_directory)),
      need_comma_(comma_first) {}

void SpanEmitter::separate() {
  text_ += need_comma_ ? ",\n" : "";
  need_comma_ = true;
}

Status SpanEmitter::put_events() {
  const Status written = sink_.write(text_);
  text_.clear();
  return written;
}

Status SpanEmitter::emit_metadata(std::string_view pid_token,
                                  int64_t tid,
                                  std::string_view what,
                                  std::string_view key,
                                  std::string_view value) {
  separate();
  append_metadata(text_, {pid_token, tid}, json_quote(what), key, value);
  return put_events();
}

// The row's number; names the row when it is new.
int64_t SpanEmitter::row_of(int64_t tid, Placing& placing) {
  EmitProcess& process = placing.process;
  const auto known = process.rows.find(tid);
  if (known != process.rows.end()) {
    return known->second;
  }
  const int64_t row =
      process.chooser.choose(process.own_rows ? kRowBase + tid : tid);
  process.rows.emplace(tid, row);
  const auto sorted = process.sort_index.find(tid);
  const int64_t index =
      sorted == process.sort_index.end() ? tid : sorted->second;
  const EventRow at{process.pid_token, row};
  separate();
  append_metadata(
      text_,
      at,
      "\"thread_name\"",
      "name",
      row_label(tid, placing.reader.thread_names(), process.own_rows));
  separate();
  append_metadata(
      text_, at, "\"thread_sort_index\"", "sort_index", std::to_string(index));
  return row;
}

void SpanEmitter::emit_span(const SortedSpan& span,
                            int64_t row,
                            Placing& placing) {
  const int64_t start =
      to_grain(placing.relation.to_trace(span.start_ns), style_.grain_ns);
  const int64_t end =
      to_grain(placing.relation.to_trace(span.end_ns), style_.grain_ns);
  const EventRow at{placing.process.pid_token, row};
  separate();
  ++counts_.spans;
  if (placing.stack.fits(start, end)) {
    append_slice(text_, style_, at, span.name, start, end, span.args);
    return;
  }
  ++counts_.async;
  append_async_pair(
      text_, style_, at, next_async_id_++, span.name, start, end, span.args);
}

void SpanEmitter::emit_open_spans(Placing& placing) {
  for (const HostOpenSpan& open : placing.reader.open_spans()) {
    const int64_t start =
        to_grain(placing.relation.to_trace(open.start_ns), style_.grain_ns);
    if (placing.window != nullptr && !touches(*placing.window, start, start)) {
      continue;
    }
    const int64_t row = row_of(open.tid, placing);
    separate();
    append_unfinished(
        text_, style_, {placing.process.pid_token, row}, open.name, start);
    ++counts_.unfinished;
  }
}

void SpanEmitter::emit_mark(const HostSpan& mark, Placing& placing) {
  const int64_t at =
      to_grain(placing.relation.to_trace(mark.start_ns), style_.grain_ns);
  if (placing.window != nullptr && !touches(*placing.window, at, at)) {
    return;
  }
  ++counts_.marks;
  const std::string& pid = placing.process.pid_token;
  if (mark.item == HostItem::kCounter) {
    // On a track of its process: no row is named for its thread.
    separate();
    append_counter(text_, style_, {pid, mark.tid}, mark.name, at, mark.args);
    return;
  }
  const int64_t row = row_of(mark.tid, placing);
  separate();
  append_instant(text_, style_, {pid, row}, mark.name, at, mark.args);
}

// A second reading of the file: marks need no order, and so no sorting.
Status SpanEmitter::emit_marks(const std::string& path, Placing& placing) {
  if (!placing.reader.metadata().has_marks()) {
    return {};
  }
  const Result<std::unique_ptr<HostReader>> reader = open_mark_reader(path);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  HostSpan mark;
  Result<bool> got = (*reader)->next(mark);
  for (; got && *got; got = (*reader)->next(mark)) {
    emit_mark(mark, placing);
    if (text_.size() >= kFlushBytes) {
      const Status put = put_events();
      if (!put) {
        return put;
      }
    }
  }
  return got ? put_events() : Status(tl::unexpected<Error>(got.error()));
}

Status SpanEmitter::collect(HostReader& reader,
                            const EmitPlace& place,
                            SpanSorter& sorter) {
  HostSpan span;
  while (true) {
    const Result<bool> got = reader.next(span);
    if (!got) {
      return tl::unexpected<Error>(got.error());
    }
    if (!*got) {
      return sorter.finish();
    }
    const int64_t end_ns = span.start_ns + span.duration_ns;
    if (place.window != nullptr &&
        !touches(*place.window,
                 place.relation->to_trace(span.start_ns),
                 place.relation->to_trace(end_ns))) {
      continue;
    }
    const Status added =
        sorter.add({span.tid, span.start_ns, end_ns, span.name, span.args});
    if (!added) {
      return added;
    }
  }
}

Status SpanEmitter::place_all(SpanSorter& sorter, Placing& placing) {
  SortedSpan span;
  std::optional<int64_t> tid;
  int64_t row = 0;
  while (true) {
    const Result<bool> got = sorter.next(span);
    if (!got) {
      return tl::unexpected<Error>(got.error());
    }
    if (!*got) {
      break;
    }
    if (tid != span.tid) {
      tid = span.tid;
      row = row_of(span.tid, placing);
      placing.stack = {};
    }
    emit_span(span, row, placing);
    if (text_.size() >= kFlushBytes) {
      const Status put = put_events();
      if (!put) {
        return put;
      }
    }
  }
  emit_open_spans(placing);
  return put_events();
}

// A wall clock that was set during the session gives no single timeline: the
// one of the session's start is kept, so that spans keep their order.
ClockRelation SpanEmitter::wall_clock(const HostReader& reader,
                                      const std::string& path) {
  ClockRelation relation =
      realtime_relation(reader.metadata(), reader.clocks());
  if (relation.steps().empty()) {
    return relation;
  }
  counts_.warnings.push_back(
      path + ": the wall clock was set during the session (by " +
      std::to_string(relation.steps().front().by_ns) +
      " ns); spans are placed by the clock as it was at its start");
  return ClockRelation::from_offset(relation.offset_ns());
}

Status SpanEmitter::emit_file(const std::string& path,
                              EmitProcess& process,
                              const EmitPlace& place) {
  Result<std::unique_ptr<HostReader>> reader = open_host_reader(path);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  SpanSorter sorter(spill_directory_);
  const Status collected = collect(**reader, place, sorter);
  if (!collected) {
    return collected;
  }
  const ClockRelation relation =
      place.relation != nullptr ? *place.relation : wall_clock(**reader, path);
  Placing placing{**reader, process, relation, place.window, {}};
  const Status placed = place_all(sorter, placing);
  return placed ? emit_marks(path, placing) : placed;
}

}  // namespace shp
