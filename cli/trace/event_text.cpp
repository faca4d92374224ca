#include "cli/trace/event_text.h"

#include <charconv>
#include <cstring>

#include "cli/trace/event_fields.h"
#include "common/jsonl/decimal.h"

namespace shp {
namespace {

constexpr size_t kMaxNumber = 40;  // and what put_decimal() may touch

constexpr size_t kUsualTexts = 600;
static_assert(kOwnCategory == "shp");

// A piece of an event, or all of it, that fits whatever it tells.
template <size_t kBytes>
class BasicText {
 public:
  BasicText& text(std::string_view text) {
    std::memcpy(end_, text.data(), text.size());
    end_ += text.size();
    return *this;
  }
  BasicText& number(int64_t value) {
    end_ = put_decimal(end_, value);
    return *this;
  }
  BasicText& us(int64_t ns) {
    end_ = put_us(end_, ns);
    return *this;
  }
  std::string_view view() const {
    return {bytes_, static_cast<size_t>(end_ - bytes_)};
  }

  static char* put_us(char* at, int64_t ns) {
    uint64_t size = static_cast<uint64_t>(ns);
    if (ns < 0) {
      *at++ = '-';
      size = 0 - size;
    }
    at = put_decimal(at, size / 1000);
    const unsigned rest = static_cast<unsigned>(size % 1000);
    *at++ = '.';
    *at++ = static_cast<char>('0' + rest / 100);
    *at++ = static_cast<char>('0' + rest / 10 % 10);
    *at++ = static_cast<char>('0' + rest % 10);
    return at;
  }

 private:
  char bytes_[kBytes];
  char* end_ = bytes_;
};
using ShortText = BasicText<4 * kMaxNumber + 64>;

void put_ts(ShortText& out, const TimeStyle& style, int64_t ns) {
  out.text(style.quoted ? ",\"ts\":\"" : ",\"ts\":").us(ns - style.base_ns);
  out.text(style.quoted ? "\"" : "");
}

void append_ts(std::string& out, const TimeStyle& style, int64_t ns) {
  ShortText text;
  put_ts(text, style, ns);
  out += text.view();
}

// Everything up to the tid's value; `kind` is the phase.
void open_event(std::string& out,
                std::string_view kind,
                std::string_view name,
                const EventRow& row) {
  ShortText head;
  head.text("{\"ph\":\"").text(kind).text("\",\"cat\":\"").text(kOwnCategory);
  out += head.text("\",\"name\":").view();
  out += name;
  out += ",\"pid\":";
  out += row.pid_token;
  ShortText tail;
  out += tail.text(",\"tid\":").number(row.tid).view();
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
  char text[kMaxNumber];
  out.append(text, ShortText::put_us(text, ns));
}

void append_slice(std::string& out,
                  const TimeStyle& style,
                  const EventRow& row,
                  std::string_view name,
                  int64_t start_ns,
                  int64_t end_ns,
                  std::string_view args) {
  if (name.size() + args.size() + row.pid_token.size() > kUsualTexts) {
    open_event(out, "X", name, row);
    append_ts(out, style, start_ns);
    out += ",\"dur\":";
    append_us(out, end_ns - start_ns);
    close_event(out, args);
    return;
  }
  // The same at one go: nearly all events are made here.
  BasicText<kUsualTexts + 400> text;
  text.text("{\"ph\":\"X\",\"cat\":\"shp\",\"name\":").text(name);
  text.text(",\"pid\":").text(row.pid_token);
  text.text(",\"tid\":").number(row.tid);
  text.text(style.quoted ? ",\"ts\":\"" : ",\"ts\":");
  text.us(start_ns - style.base_ns);
  text.text(style.quoted ? "\",\"dur\":" : ",\"dur\":").us(end_ns - start_ns);
  out += text.text(",\"args\":").text(args).text("}").view();
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
