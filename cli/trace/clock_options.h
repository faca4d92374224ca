// --pid-map, --clock-offset-ns and --clock-anchors-ns: what their texts mean.
//
// Pure. The forms and the words of the errors are those of the predecessor's
// command line (cli.py): JSON, where an object is keyed by Host OS PIDs. Where
// several hosts have the same pid, a key may be "HOST:PID".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/trace/clock_align.h"
#include "cli/trace/match.h"
#include "common/base/result.h"

namespace shp {

// What is given for processes, each named by a Host OS PID or by HOST:PID.
template <typename Value>
struct ByProcess {
  using Key = std::pair<std::string, int64_t>;  // no host: any
  using Items = std::map<Key, Value>;
  Items items;

  // Null when nothing is given for this process.
  const Value* find(const std::string& hostname, int64_t os_pid) const {
    const Value* any = nullptr;
    for (const auto& [key, value] : items) {
      if (key.second != os_pid) {
        continue;
      }
      if (key.first.empty()) {
        any = &value;
      } else if (same_host_name(key.first, hostname)) {
        return &value;
      }
    }
    return any;
  }
};

// To the pid of the process in the Torch trace.
using PidMap = ByProcess<int64_t>;

// Relations that the user gives: one for the only trace, or one a process.
struct GivenClocks {
  std::optional<ClockRelation> only;
  ByProcess<ClockRelation> by_process;

  // Null when none is given for this process.
  const ClockRelation* find(const std::string& hostname, int64_t os_pid) const;
};

Result<PidMap> parse_pid_map(std::string_view text);

// An integer, or {"host_pid": integer}.
Result<GivenClocks> parse_clock_offset(std::string_view text);

// [[host0,target0],[host1,target1]], or {"host_pid": such a pair}.
Result<GivenClocks> parse_clock_anchors(std::string_view text);

}  // namespace shp
