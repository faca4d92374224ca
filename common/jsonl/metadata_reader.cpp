#include "common/jsonl/metadata_reader.h"

#include <utility>

#include "common/jsonl/json_check.h"
#include "common/jsonl/span_format.h"

namespace shp {

JsonMembers::JsonMembers(std::string_view object) {
  for_each_member(object, [this](std::string_view key, std::string_view value) {
    members_[std::string(key)] = value;
    return true;
  });
}

std::optional<int64_t> JsonMembers::integer(const char* key) const {
  const auto found = members_.find(key);
  return found == members_.end() ? std::nullopt : json_int(found->second);
}

std::string JsonMembers::string(const char* key) const {
  const auto found = members_.find(key);
  const bool is_string =
      found != members_.end() && found->second.front() == '"';
  return is_string ? json_unescape(found->second) : std::string();
}

std::vector<std::string> JsonMembers::strings(const char* key) const {
  std::vector<std::string> out;
  const auto found = members_.find(key);
  if (found == members_.end() || found->second.front() != '[') {
    return out;
  }
  const char* end = found->second.data() + found->second.size();
  const char* at = skip_json_space(found->second.data() + 1, end);
  while (*at != ']') {
    const char* behind = check_json_value(at, end);
    if (*at == '"') {
      out.push_back(json_unescape({at, static_cast<size_t>(behind - at)}));
    }
    at = skip_json_space(behind, end);
    at = *at == ',' ? skip_json_space(at + 1, end) : at;
  }
  return out;
}

std::map<std::string, int64_t> JsonMembers::counts(const char* key) const {
  std::map<std::string, int64_t> out;
  const auto found = members_.find(key);
  if (found == members_.end() || found->second.front() != '{') {
    return out;
  }
  const JsonMembers inner(found->second);
  for (const auto& [name, text] : inner.members_) {
    const int64_t count = json_int(text).value_or(0);
    if (count > 0) {
      out.emplace(name, count);
    }
  }
  return out;
}

int64_t JsonMembers::need_integer(const char* key) {
  const std::optional<int64_t> value = integer(key);
  if (!value) {
    complain(key, "is not an integer");
  }
  return value.value_or(0);
}

int64_t JsonMembers::need_count(const char* key) {
  const int64_t value = need_integer(key);
  if (value < 0) {
    complain(key, "is negative");
  }
  return value;
}

std::string JsonMembers::need_string(const char* key) {
  const auto found = members_.find(key);
  if (found == members_.end() || found->second.front() != '"') {
    complain(key, "is not a string");
  }
  return string(key);
}

bool JsonMembers::need_bool(const char* key) {
  const auto found = members_.find(key);
  if (found == members_.end() ||
      (found->second != "true" && found->second != "false")) {
    complain(key, "is not true or false");
    return false;
  }
  return found->second == "true";
}

void JsonMembers::complain(const char* key, const char* what) {
  if (!problem_.empty()) {
    return;
  }
  const bool missing = members_.find(key) == members_.end();
  problem_ = missing ? "metadata has no \"" + std::string(key) + "\""
                     : "metadata: " + std::string(key) + " " + what;
}

namespace {

void check_times(const HostMetadata& metadata, JsonMembers& members) {
  const std::pair<const char*, int64_t> times[] = {
      {"start_monotonic_ns", metadata.start_monotonic_ns},
      {"start_realtime_ns", metadata.start_realtime_ns},
      {"clock_uncertainty_ns", metadata.clock_uncertainty_ns},
      {"stop_monotonic_ns", metadata.stop_monotonic_ns},
      {"stop_realtime_ns", metadata.stop_realtime_ns},
      {"start_monotonic_raw_ns", metadata.start_monotonic_raw_ns.value_or(0)},
      {"stop_monotonic_raw_ns", metadata.stop_monotonic_raw_ns.value_or(0)},
  };
  for (const auto& [key, value] : times) {
    if (!is_time(value)) {
      members.complain(key, "is not a time in ns");
    }
  }
}

void check_ranges(const HostMetadata& metadata, JsonMembers& members) {
  check_times(metadata, members);
  if (metadata.session_id.empty()) {
    members.complain("session_id", "is empty");
  }
  if (metadata.pid <= 0) {
    members.complain("pid", "is not positive");
  }
  if (metadata.stop_monotonic_ns < metadata.start_monotonic_ns) {
    members.complain("stop_monotonic_ns", "is before start_monotonic_ns");
  }
}

}  // namespace

std::string parse_metadata(std::string_view object,
                           HostMetadata& out,
                           int oldest_version) {
  JsonMembers members(object);
  const int64_t version = members.need_integer("schema_version");
  if (version < oldest_version || version > kSchemaVersion) {
    members.complain("schema_version", "is not 3");
  }
  out.session_id = members.need_string("session_id");
  out.pid = members.need_integer("pid");
  out.hostname = members.need_string("hostname");
  if (members.need_string("clock") != "monotonic") {
    members.complain("clock", "is not \"monotonic\"");
  }
  out.start_monotonic_ns = members.need_integer("start_monotonic_ns");
  out.start_realtime_ns = members.need_integer("start_realtime_ns");
  out.clock_uncertainty_ns = members.need_count("clock_uncertainty_ns");
  out.written_spans = members.need_count("written_spans");
  out.dropped_spans = members.need_count("dropped_spans");
  out.stop_monotonic_ns = members.need_integer("stop_monotonic_ns");
  out.stop_realtime_ns = members.need_integer("stop_realtime_ns");
  out.complete = members.need_bool("complete");
  out.start_monotonic_raw_ns = members.integer("start_monotonic_raw_ns");
  out.stop_monotonic_raw_ns = members.integer("stop_monotonic_raw_ns");
  out.pid_namespace = members.integer("pid_namespace");
  out.host_pid = members.integer("host_pid");
  out.boot_id = members.string("boot_id");
  out.end_reason = members.string("end_reason");
  out.argv = members.strings("argv");
  out.dropped = members.counts("dropped");
  out.bad_args = members.integer("bad_args").value_or(0);
  out.written_instants = members.integer("written_instants");
  out.written_counters = members.integer("written_counters");
  out.dropped_marks = members.integer("dropped_marks").value_or(0);
  for (const char* key : {"written_instants", "written_counters"}) {
    if (members.integer(key).value_or(0) < 0) {
      members.complain(key, "is negative");
    }
  }
  check_ranges(out, members);
  return members.problem();
}

}  // namespace shp
