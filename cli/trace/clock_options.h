// --pid-map, --clock-offset-ns and --clock-anchors-ns: what their texts mean.
//
// Pure. The forms and the words of the errors are those of the predecessor's
// command line (cli.py): JSON, where an object is keyed by Host OS PIDs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cli/trace/clock_align.h"
#include "common/base/result.h"

namespace shp {

// Host OS PID to the pid of its process in the Torch trace.
using PidMap = std::map<int64_t, int64_t>;

// Relations that the user gives: one for the only trace, or one a Host OS PID.
struct GivenClocks {
  std::optional<ClockRelation> only;
  std::map<int64_t, ClockRelation> by_pid;

  bool empty() const { return !only && by_pid.empty(); }
  // Null when none is given for this process.
  const ClockRelation* find(int64_t host_pid) const;
};

Result<PidMap> parse_pid_map(std::string_view text);

// An integer, or {"host_pid": integer}.
Result<GivenClocks> parse_clock_offset(std::string_view text);

// [[host0,target0],[host1,target1]], or {"host_pid": such a pair}.
Result<GivenClocks> parse_clock_anchors(std::string_view text);

}  // namespace shp
