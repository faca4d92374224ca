#include "common/jsonl/span_line.h"

#include <cstring>

#include "common/jsonl/json_check.h"

namespace shp {
namespace {

// Walks over the usual spelling; `ok` stays false after the first mismatch.
struct Cursor {
  const char* at;
  const char* end;
  bool ok = true;

  template <size_t kSize>
  void literal(const char (&text)[kSize]) {
    ok = ok && static_cast<size_t>(end - at) >= kSize - 1 &&
         std::memcmp(at, text, kSize - 1) == 0;
    at += ok ? kSize - 1 : 0;
  }

  int64_t integer() {
    const std::optional<int64_t> value =
        ok ? scan_json_int(at, end) : std::nullopt;
    ok = value.has_value();
    return value.value_or(0);
  }

  std::string_view text(const char* behind) {
    ok = behind != nullptr;
    const std::string_view taken(at, ok ? static_cast<size_t>(behind - at) : 0);
    at = ok ? behind : at;
    return taken;
  }

  std::string_view string() {
    const bool quoted = ok && at < end && *at == '"';
    return text(quoted ? check_json_string(at, end) : nullptr);
  }

  std::string_view object() {
    if (ok && end - at >= 2 && at[0] == '{' && at[1] == '}') {
      return text(at + 2);
    }
    const bool object = ok && at < end && *at == '{';
    return text(object ? check_json_value(at, end) : nullptr);
  }
};

// From behind the id to the name's quote.
void take_thread(Cursor& cursor, ThreadMemo& memo) {
  const char* begin = cursor.at;
  const size_t left = static_cast<size_t>(cursor.end - begin);
  if (cursor.ok && !memo.text.empty() && left >= memo.text.size() &&
      std::memcmp(begin, memo.text.data(), memo.text.size()) == 0) {
    cursor.at += memo.text.size();
    return;
  }
  cursor.literal(",\"pid\":");
  memo.pid = cursor.integer();
  cursor.literal(",\"tid\":");
  memo.tid = cursor.integer();
  cursor.literal(",\"name\":");
  memo.text.assign(begin, cursor.ok ? cursor.at : begin);
}

// Which keys a span line must have, as bits.
enum : unsigned {
  kId = 1,
  kPid = 2,
  kTid = 4,
  kName = 8,
  kStart = 16,
  kDuration = 32,
  kArgs = 64,
  kAllKeys = 127,
};

struct IntegerKey {
  std::string_view key;
  unsigned bit;
};

constexpr IntegerKey kIntegerKeys[] = {
    {"id", kId},
    {"pid", kPid},
    {"tid", kTid},
    {"start_ns", kStart},
    {"duration_ns", kDuration},
};

int64_t& field_of(SpanLine& line, unsigned bit) {
  switch (bit) {
    case kId:
      return line.span.id;
    case kPid:
      return line.pid;
    case kTid:
      return line.span.tid;
    case kStart:
      return line.span.start_ns;
    default:
      return line.span.duration_ns;
  }
}

// Takes one member; sets its bit in `seen`, or says what is wrong with it.
std::string take_member(std::string_view key,
                        std::string_view value,
                        SpanLine& out,
                        unsigned& seen) {
  for (const IntegerKey& known : kIntegerKeys) {
    if (key == known.key) {
      const std::optional<int64_t> number = json_int(value);
      if (!number) {
        return std::string(key) + " is not an integer of 64 bits";
      }
      field_of(out, known.bit) = *number;
      seen |= known.bit;
      return {};
    }
  }
  if (key == "name") {
    if (value.front() != '"') {
      return "name is not a string";
    }
    out.span.name = value;
    seen |= kName;
  } else if (key == "args") {
    if (value.front() != '{') {
      return "args is not an object";
    }
    out.span.args = value;
    seen |= kArgs;
  }
  return {};
}

std::string missing_keys(unsigned seen) {
  static constexpr IntegerKey kKeys[] = {{"id", kId},
                                         {"pid", kPid},
                                         {"tid", kTid},
                                         {"name", kName},
                                         {"start_ns", kStart},
                                         {"duration_ns", kDuration},
                                         {"args", kArgs}};
  for (const IntegerKey& known : kKeys) {
    if ((seen & known.bit) == 0) {
      return "span has no \"" + std::string(known.key) + "\"";
    }
  }
  return {};
}

}  // namespace

bool parse_usual_span(std::string_view line, SpanLine& out, ThreadMemo& memo) {
  Cursor cursor{line.data(), line.data() + line.size()};
  cursor.literal("{\"type\":\"span\",\"id\":");
  out.span.id = cursor.integer();
  take_thread(cursor, memo);
  out.pid = memo.pid;
  out.span.tid = memo.tid;
  out.span.name = cursor.string();
  cursor.literal(",\"start_ns\":");
  out.span.start_ns = cursor.integer();
  cursor.literal(",\"duration_ns\":");
  out.span.duration_ns = cursor.integer();
  cursor.literal(",\"args\":");
  out.span.args = cursor.object();
  cursor.literal("}");
  return cursor.ok && cursor.at == cursor.end;
}

std::string parse_any_span(std::string_view line, SpanLine& out) {
  unsigned seen = 0;
  std::string problem;
  for_each_member(line, [&](std::string_view key, std::string_view value) {
    problem = take_member(key, value, out, seen);
    return problem.empty();
  });
  return problem.empty() ? missing_keys(seen) : problem;
}

std::string line_type(std::string_view line) {
  std::string type;
  if (line.empty() ||
      *skip_json_space(line.data(), line.data() + line.size()) != '{') {
    return type;
  }
  for_each_member(line, [&](std::string_view key, std::string_view value) {
    if (key == "type") {
      type = value.front() == '"' ? json_unescape(value) : std::string();
    }
    return true;
  });
  return type;
}

}  // namespace shp
