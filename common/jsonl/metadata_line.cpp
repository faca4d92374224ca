// Line 1 of a host file. Written once a session, so it is plain and not fast.
#include <algorithm>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/jsonl/json_text.h"
#include "common/jsonl/line_writer.h"

namespace shp {
namespace {

class ObjectText {
 public:
  explicit ObjectText(std::string* out) : out_(*out) { out_ += '{'; }

  void key(std::string_view name) {
    if (out_.back() != '{') {
      out_ += ',';
    }
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(value, &out_);
  }
  template <typename Integer>
  void number(std::string_view name, Integer value) {
    key(name);
    out_ += std::to_string(value);
  }
  void boolean(std::string_view name, bool value) {
    key(name);
    out_ += value ? "true" : "false";
  }
  void close() { out_ += '}'; }

 private:
  std::string& out_;
};

std::string_view clock_kind_name(ClockKind kind) {
  switch (kind) {
    case ClockKind::kTsc:
      return "tsc";
    case ClockKind::kCntvct:
      return "cntvct";
    default:
      return "monotonic";
  }
}

// A sample holds every clock at the end of its bracket; the file speaks of
// REALTIME and RAW at its middle.
int64_t at_middle(const ClockSample& sample, int64_t ns) {
  return ns - sample.uncertainty_ns / 2;
}

// The keys of the predecessor's format, in its order.
void put_first_keys(const HostFileMetadata& from, ObjectText* to) {
  to->text("type", "metadata");
  to->number("schema_version", kSchemaVersion);
  to->text("session_id", from.session_id);
  to->number("pid", from.pid);
  to->text("hostname", from.hostname);
  to->text("clock", "monotonic");
  to->number("start_monotonic_ns",
             from.start.monotonic_ns - from.start.uncertainty_ns);
  to->number("start_realtime_ns",
             at_middle(from.start, from.start.realtime_ns));
  to->number("clock_uncertainty_ns", from.start.uncertainty_ns);
  to->number("written_spans", from.written_spans);
  to->number("dropped_spans", from.dropped.sum());
  to->number("stop_monotonic_ns", from.stop.monotonic_ns);
  to->number("stop_realtime_ns", at_middle(from.stop, from.stop.realtime_ns));
  to->boolean("complete", from.complete);
}

void put_losses(const HostFileMetadata& from,
                std::string* line,
                ObjectText* to) {
  to->key("dropped");
  ObjectText dropped(line);
  dropped.number("unfinished", from.dropped.unfinished);
  dropped.number("overflow", from.dropped.overflow);
  dropped.number("outside", from.dropped.outside);
  dropped.number("bad_name", from.dropped.bad_name);
  dropped.number("reentrant", from.dropped.reentrant);
  dropped.number("no_ring", from.dropped.no_ring);
  dropped.close();
  to->number("bad_args", from.bad_args);
  to->number("names_lost", from.names_lost);
  if (from.broken_rings > 0) {
    to->number("broken_rings", from.broken_rings);
  }
}

void put_more_keys(const HostFileMetadata& from,
                   std::string* line,
                   ObjectText* to) {
  to->text("writer", "shp " SHP_VERSION);
  to->number("start_monotonic_raw_ns",
             at_middle(from.start, from.start.monotonic_raw_ns));
  to->number("stop_monotonic_raw_ns",
             at_middle(from.stop, from.stop.monotonic_raw_ns));
  to->number("start_ticks", from.start.ticks);
  to->number("stop_ticks", from.stop.ticks);
  to->text("clock_kind", clock_kind_name(from.clock_kind));
  to->number("written_instants", from.written_instants);
  to->number("written_counters", from.written_counters);
  to->number("dropped_marks", from.dropped_marks);
  put_losses(from, line, to);
  to->text("end_reason", from.end_reason);
  if (from.exit_code >= 0) {
    to->number("exit_code", from.exit_code);
  }
  if (from.exit_signal >= 0) {
    to->number("exit_signal", from.exit_signal);
  }
  to->number("ppid", from.ppid);
  to->number("host_pid", from.host_pid);
  to->number("uid", from.uid);
  to->number("pid_namespace", from.pid_namespace);
  to->text("boot_id", from.boot_id);
}

// Appends `item` to the array at the end of `line` when it leaves room for what
// must still follow.
bool put_item(const std::string& item, size_t limit, std::string* line) {
  if (line->size() + item.size() + 1 > limit) {
    return false;
  }
  if (line->back() != '[') {
    *line += ',';
  }
  *line += item;
  return true;
}

void put_argv(std::string_view argv, size_t limit, std::string* line) {
  *line += '[';
  while (!argv.empty()) {
    const size_t end = std::min(argv.find('\0'), argv.size());
    std::string item;
    append_json_string(argv.substr(0, end), &item);
    if (!put_item(item, limit, line)) {
      break;
    }
    argv.remove_prefix(std::min(end + 1, argv.size()));
  }
  *line += ']';
}

void put_open_spans(const std::vector<OpenSpanEntry>& spans,
                    size_t limit,
                    std::string* line) {
  *line += '[';
  for (const OpenSpanEntry& span : spans) {
    const std::string item = R"({"tid":)" + std::to_string(span.tid) +
                             R"(,"name":)" + span.name_text +
                             std::to_string(span.start_ns) + '}';
    if (!put_item(item, limit, line)) {
      break;
    }
  }
  *line += ']';
}

}  // namespace

std::string metadata_line(const HostFileMetadata& metadata,
                          const std::vector<OpenSpanEntry>& open_spans) {
  std::string line;
  line.reserve(kMetadataLineBytes);
  ObjectText object(&line);
  put_first_keys(metadata, &object);
  put_more_keys(metadata, &line, &object);
  // What the ends of both arrays, the object and the line take.
  constexpr size_t kTail = 8;
  object.key("argv");
  const size_t room = kMetadataLineBytes - line.size();
  const size_t for_argv = open_spans.empty() ? room - 64 : room / 2;
  put_argv(metadata.argv, line.size() + for_argv, &line);
  if (!open_spans.empty()) {
    object.key("open_spans");
    put_open_spans(open_spans, kMetadataLineBytes - kTail, &line);
  }
  object.close();
  SHP_CHECK(line.size() < kMetadataLineBytes);
  line.resize(kMetadataLineBytes - 1, ' ');
  line += '\n';
  return line;
}

}  // namespace shp
