#include "common/jsonl/mark_line.h"

#include "common/jsonl/json_check.h"

namespace shp {
namespace {

struct Integers {
  std::optional<int64_t> pid;
  std::optional<int64_t> tid;
  std::optional<int64_t> time_ns;
};

std::optional<int64_t>* integer_of(std::string_view key, Integers& integers) {
  if (key == "pid") {
    return &integers.pid;
  }
  if (key == "tid") {
    return &integers.tid;
  }
  return key == "time_ns" ? &integers.time_ns : nullptr;
}

bool is_number(std::string_view value) {
  return value.front() == '-' || (value.front() >= '0' && value.front() <= '9');
}

// One number at least, and nothing else.
bool holds_numbers(std::string_view object) {
  size_t members = 0;
  bool numbers = true;
  for_each_member(object, [&](std::string_view, std::string_view value) {
    ++members;
    numbers = numbers && is_number(value);
    return numbers;
  });
  return members > 0 && numbers;
}

}  // namespace

HostItem mark_item(std::string_view type) {
  return type == "instant"   ? HostItem::kInstant
         : type == "counter" ? HostItem::kCounter
                             : HostItem::kSpan;
}

std::string parse_mark(std::string_view line, HostSpan& out, int64_t& pid) {
  Integers integers;
  out.name = {};
  out.args = {};
  for_each_member(line, [&](std::string_view key, std::string_view value) {
    if (auto* integer = integer_of(key, integers); integer != nullptr) {
      *integer = json_int(value);
    } else if (key == "name" && value.front() == '"') {
      out.name = value;
    } else if (key == "args" && value.front() == '{') {
      out.args = value;
    }
    return true;
  });
  const bool counter = out.item == HostItem::kCounter;
  const std::string what = counter ? "counter" : "instant";
  if (!integers.pid || !integers.tid || !integers.time_ns) {
    return what + " without pid, tid and time_ns";
  }
  if (out.name.empty() || out.args.empty()) {
    return what + " without a name and args";
  }
  if (counter && !holds_numbers(out.args)) {
    return "counter whose args are not numbers";
  }
  out.id = 0;
  out.tid = *integers.tid;
  out.start_ns = *integers.time_ns;
  out.duration_ns = 0;
  pid = *integers.pid;
  return {};
}

}  // namespace shp
