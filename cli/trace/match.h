// Deciding, part three: which host files belong to which trace.
//
// Pure. By pid (after --pid-map), by host name where the trace tells its own,
// and by overlap in time of session and capture. Two processes that all of this
// cannot tell apart are an ambiguity, which is reported and never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/trace/scan.h"

namespace shp {

// A host file as the match sees it.
struct HostFacts {
  std::string path;     // for messages
  int64_t pid = 0;      // in the Torch trace
  bool mapped = false;  // --pid-map says so
  int64_t os_pid = 0;   // what --pid-map calls it
  std::string hostname;
  std::string boot_id;        // empty: not told
  int64_t pid_namespace = 0;  // 0: not told
  std::optional<int64_t> rank;
  TimeWindow session;  // trace ns
};

struct TraceFacts {
  std::vector<int64_t> host_pids;  // likeliest first, none twice
  std::string host_name;           // empty: not told
  std::optional<int64_t> rank;
  TimeWindow window;  // trace ns
};

// A process of the trace and its host files.
struct MatchedProcess {
  int64_t pid = 0;
  std::vector<size_t> hosts;  // indices into the host files
};

struct Match {
  std::vector<MatchedProcess> processes;  // likeliest first
  // Empty when there is a match. An ambiguity is a failure; no match is not.
  std::string problem;
  bool ambiguous = false;
};

Match match_trace(const TraceFacts& trace, const std::vector<HostFacts>& hosts);

// The same host by what two machines' tools call it: "node7" is "node7.lan".
bool same_host_name(const std::string& a, const std::string& b);

}  // namespace shp
