#include "cli/trace/clock_options.h"

#include <algorithm>
#include <array>
#include <functional>

#include "common/jsonl/json_check.h"

namespace shp {
namespace {

constexpr std::string_view kOffset = "--clock-offset-ns";
constexpr std::string_view kAnchors = "--clock-anchors-ns";

// So that the sum with any time of a host file fits 64 bits.
constexpr int64_t kMaxGivenNs = int64_t{1} << 61;

std::string_view trim(std::string_view text) {
  const char* end = text.data() + text.size();
  const char* at = skip_json_space(text.data(), end);
  text.remove_prefix(static_cast<size_t>(at - text.data()));
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') {
    text.remove_suffix(1);
  }
  return text;
}

tl::unexpected<Error> not_json(std::string_view option) {
  return error(std::string(option) + " is not valid JSON");
}

bool is_decimal(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

// A decimal that may be padded with zeros, as Python's int() takes it.
std::optional<int64_t> decimal(std::string_view key) {
  const size_t first = key.find_first_not_of('0');
  return json_int(first == std::string_view::npos ? "0" : key.substr(first));
}

// "PID" or "HOST:PID"; the last colon counts.
std::optional<std::pair<std::string, int64_t>> process_key(
    std::string_view key) {
  const size_t colon = key.rfind(':');
  const bool has_host = colon != std::string_view::npos && colon > 0;
  const std::string_view digits = has_host ? key.substr(colon + 1) : key;
  const auto pid = is_decimal(digits) ? decimal(digits) : std::nullopt;
  if (!pid) {
    return std::nullopt;
  }
  return std::pair(std::string(has_host ? key.substr(0, colon) : ""), *pid);
}

std::optional<int64_t> given_ns(std::string_view value) {
  const std::optional<int64_t> ns = json_int(value);
  return ns && *ns >= -kMaxGivenNs && *ns <= kMaxGivenNs ? ns : std::nullopt;
}

// The two elements of a JSON array, or nothing.
std::optional<std::array<std::string_view, 2>> pair_of(std::string_view text) {
  if (text.front() != '[') {
    return std::nullopt;
  }
  std::array<std::string_view, 2> items;
  const char* end = text.data() + text.size();
  const char* at = skip_json_space(text.data() + 1, end);
  for (std::string_view& item : items) {
    if (*at == ']') {
      return std::nullopt;
    }
    const char* behind = check_json_value(at, end);
    item = {at, static_cast<size_t>(behind - at)};
    at = skip_json_space(behind, end);
    at = *at == ',' ? skip_json_space(at + 1, end) : at;
  }
  return *at == ']' ? std::optional(items) : std::nullopt;
}

std::optional<ClockPoint> point_of(std::string_view text) {
  const auto pair = pair_of(text);
  const auto host = pair ? given_ns((*pair)[0]) : std::nullopt;
  const auto target = pair ? given_ns((*pair)[1]) : std::nullopt;
  return host && target ? std::optional(ClockPoint{*host, *target, 0})
                        : std::nullopt;
}

Result<ClockRelation> offset_of(std::string_view value) {
  const std::optional<int64_t> ns = given_ns(value);
  if (!ns) {
    return error(std::string(kOffset) + " values must be integers of ns");
  }
  return ClockRelation::from_offset(*ns);
}

Result<ClockRelation> anchors_of(std::string_view value) {
  const auto pair = pair_of(value);
  const auto first = pair ? point_of((*pair)[0]) : std::nullopt;
  const auto second = pair ? point_of((*pair)[1]) : std::nullopt;
  if (!first || !second) {
    return error(std::string(kAnchors) +
                 " values must be [[host0,target0],[host1,target1]]");
  }
  if (first->host_ns >= second->host_ns ||
      first->trace_ns >= second->trace_ns) {
    return error(std::string(kAnchors) +
                 " must rise from the first pair to the second");
  }
  return ClockRelation::from_anchors(*first, *second);
}

using ParseRelation = std::function<Result<ClockRelation>(std::string_view)>;

Result<GivenClocks> parse_clocks(std::string_view text,
                                 std::string_view option,
                                 const ParseRelation& parse) {
  if (!is_json(text)) {
    return not_json(option);
  }
  text = trim(text);
  GivenClocks given;
  if (text.front() != '{') {
    Result<ClockRelation> relation = parse(text);
    if (!relation) {
      return tl::unexpected<Error>(relation.error());
    }
    given.only = std::move(*relation);
    return given;
  }
  std::optional<Error> problem;
  for_each_member(text, [&](std::string_view key, std::string_view value) {
    const auto process = process_key(key);
    if (!process) {
      problem =
          Error{std::string(option) + " keys must be decimal Host OS PIDs", 0};
      return false;
    }
    Result<ClockRelation> relation = parse(value);
    if (!relation) {
      problem = relation.error();
      return false;
    }
    given.by_process.items.insert_or_assign(*process, std::move(*relation));
    return true;
  });
  if (problem) {
    return tl::unexpected<Error>(*problem);
  }
  return given;
}

}  // namespace

const ClockRelation* GivenClocks::find(const std::string& hostname,
                                       int64_t os_pid) const {
  return only ? &*only : by_process.find(hostname, os_pid);
}

Result<PidMap> parse_pid_map(std::string_view text) {
  if (!is_json(text)) {
    return not_json("--pid-map");
  }
  text = trim(text);
  if (text.front() != '{') {
    return error("--pid-map must be a JSON object");
  }
  // A key that is spelled the same twice is one key: the last one counts.
  std::map<std::string, std::string, std::less<>> members;
  for_each_member(text, [&](std::string_view key, std::string_view value) {
    members.insert_or_assign(std::string(key), std::string(value));
    return true;
  });
  PidMap map;
  for (const auto& [key, value] : members) {
    const auto process = process_key(key);
    if (!process) {
      return error("--pid-map keys must be decimal OS PIDs");
    }
    const bool quoted = value.size() > 2 && value.front() == '"';
    const auto torch =
        json_int(quoted ? value.substr(1, value.size() - 2) : value);
    if (!torch || *torch < 0) {
      return error("--pid-map values must be Torch Host PIDs");
    }
    if (!map.items.emplace(*process, *torch).second) {
      return error("--pid-map contains duplicate PID spellings");
    }
  }
  return map;
}

Result<GivenClocks> parse_clock_offset(std::string_view text) {
  return parse_clocks(text, kOffset, offset_of);
}

Result<GivenClocks> parse_clock_anchors(std::string_view text) {
  return parse_clocks(text, kAnchors, anchors_of);
}

}  // namespace shp
