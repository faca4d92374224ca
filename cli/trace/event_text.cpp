#include "cli/trace/event_text.h"

#include <charconv>

#include "cli/trace/event_fields.h"

namespace shp {
namespace {

void append_int(std::string& out, int64_t value) {
  char digits[24];
  const auto [end, problem] =
      std::to_chars(digits, digits + sizeof(digits), value);
  static_cast<void>(problem);
  out.append(digits, end);
}

void append_ts(std::string& out, const TimeStyle& style, int64_t ns) {
  out += style.quoted ? ",\"ts\":\"" : ",\"ts\":";
  append_us(out, ns - style.base_ns);
  if (style.quoted) {
    out += '"';
  }
}

// Everything up to the time; `kind` is the phase.
void open_event(std::string& out,
                std::string_view kind,
                std::string_view name,
                const EventRow& row) {
  out += "{\"ph\":\"";
  out += kind;
  out += "\",\"cat\":\"";
  out += kOwnCategory;
  out += "\",\"name\":";
  out += name;
  out += ",\"pid\":";
  out += row.pid_token;
  out += ",\"tid\":";
  append_int(out, row.tid);
}

// Of the process: by a plain "id" Perfetto takes the pair for everybody's and
// shows it beside no process.
void append_id(std::string& out, uint64_t id) {
  char digits[24];
  const auto [end, problem] =
      std::to_chars(digits, digits + sizeof(digits), id, 16);
  static_cast<void>(problem);
  out += ",\"id2\":{\"local\":\"0x";
  out.append(digits, end);
  out += "\"}";
}

void close_event(std::string& out, std::string_view args) {
  out += ",\"args\":";
  out += args;
  out += '}';
}

}  // namespace

void append_us(std::string& out, int64_t ns) {
  const bool negative = ns < 0;
  const uint64_t size =
      negative ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  char text[32];
  char* end = text;
  if (negative) {
    *end++ = '-';
  }
  end = std::to_chars(end, text + sizeof(text), size / 1000).ptr;
  const unsigned rest = static_cast<unsigned>(size % 1000);
  *end++ = '.';
  *end++ = static_cast<char>('0' + rest / 100);
  *end++ = static_cast<char>('0' + rest / 10 % 10);
  *end++ = static_cast<char>('0' + rest % 10);
  out.append(text, end);
}

void append_slice(std::string& out,
                  const TimeStyle& style,
                  const EventRow& row,
                  std::string_view name,
                  int64_t start_ns,
                  int64_t end_ns,
                  std::string_view args) {
  open_event(out, "X", name, row);
  append_ts(out, style, start_ns);
  out += ",\"dur\":";
  append_us(out, end_ns - start_ns);
  close_event(out, args);
}

void append_async_pair(std::string& out,
                       const TimeStyle& style,
                       const EventRow& row,
                       uint64_t id,
                       std::string_view name,
                       int64_t start_ns,
                       int64_t end_ns,
                       std::string_view args) {
  open_event(out, "b", name, row);
  append_id(out, id);
  append_ts(out, style, start_ns);
  close_event(out, args);
  out += ",\n";
  open_event(out, "e", name, row);
  append_id(out, id);
  append_ts(out, style, end_ns);
  out += '}';
}

void append_instant(std::string& out,
                    const TimeStyle& style,
                    const EventRow& row,
                    std::string_view name,
                    int64_t time_ns,
                    std::string_view args) {
  open_event(out, "i", name, row);
  out += ",\"s\":\"t\"";
  append_ts(out, style, time_ns);
  close_event(out, args);
}

void append_unfinished(std::string& out,
                       const TimeStyle& style,
                       const EventRow& row,
                       std::string_view name,
                       int64_t start_ns) {
  append_instant(out, style, row, name, start_ns, "{\"unfinished\":true}");
}

void append_counter(std::string& out,
                    const TimeStyle& style,
                    const EventRow& row,
                    std::string_view name,
                    int64_t time_ns,
                    std::string_view values) {
  open_event(out, "C", name, row);
  append_ts(out, style, time_ns);
  close_event(out, values);
}

void append_metadata(std::string& out,
                     const EventRow& row,
                     std::string_view what,
                     std::string_view key,
                     std::string_view value) {
  open_event(out, "M", what, row);
  out += ",\"args\":{\"";
  out += key;
  out += "\":";
  out += value;
  out += "}}";
}

}  // namespace shp
