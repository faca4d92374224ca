// A host file's metadata and spans as its readers give them (line_reader.h and
// whoever else reads sessions): plain data, times in ns of the clocks that
// span_format.h names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shp {

struct HostMetadata {
  std::string session_id;
  std::string hostname;
  int64_t pid = 0;
  int64_t start_monotonic_ns = 0;
  int64_t start_realtime_ns = 0;
  int64_t clock_uncertainty_ns = 0;
  int64_t stop_monotonic_ns = 0;
  int64_t stop_realtime_ns = 0;
  int64_t written_spans = 0;
  int64_t dropped_spans = 0;
  bool complete = false;
  // Keys that the predecessor does not write.
  std::optional<int64_t> start_monotonic_raw_ns;
  std::optional<int64_t> stop_monotonic_raw_ns;
  std::optional<int64_t> pid_namespace;
  std::optional<int64_t> host_pid;  // in the daemon's pid namespace
  std::string boot_id;
  std::string end_reason;
  std::vector<std::string> argv;
  std::map<std::string, int64_t> dropped;  // by cause, those above 0
  int64_t bad_args = 0;
  // Instants and counter values; no numbers in a file of an older writer.
  std::optional<int64_t> written_instants;
  std::optional<int64_t> written_counters;
  int64_t dropped_marks = 0;

  bool has_marks() const {
    return written_instants.value_or(0) + written_counters.value_or(0) > 0;
  }
};

enum class HostItem : uint8_t { kSpan, kInstant, kCounter };

// A span, or a mark: an instant or a counter's values, which have no id and no
// duration.
struct HostSpan {
  HostItem item = HostItem::kSpan;
  int64_t id = 0;
  int64_t tid = 0;
  int64_t start_ns = 0;  // CLOCK_MONOTONIC
  int64_t duration_ns = 0;
  std::string_view name;  // JSON string, with its quotes
  std::string_view args;  // JSON object; a counter's holds numbers only
};

}  // namespace shp
