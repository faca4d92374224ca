// Asks a running shpd what it is doing: `shp status` shows it, `shp run` waits
// by it. One short connection a call; nothing is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace shp {

struct SessionStatus {
  int64_t pid = 0;  // as the daemon sees it
  std::string session_id;
  std::string directory;  // as the client named it
  std::string file;       // its name in there
  std::string state;
  uint64_t spans = 0;  // lines written so far
  uint64_t dropped = 0;
  int64_t started_realtime_ns = 0;
};

struct DaemonStatus {
  std::string json;  // the whole answer, as it came
  int64_t pid = 0;
  std::string version;
  std::vector<SessionStatus> sessions;
};

// The answer of the daemon that listens at `socket`. ENOENT and ECONNREFUSED
// mean that there is none.
[[nodiscard]] Result<DaemonStatus> query_daemon(const std::string& socket,
                                                int timeout_ms);

// Keys that are not there or of another type leave the default: daemons of
// other versions may say more or less.
[[nodiscard]] Result<DaemonStatus> parse_status(std::string_view json);

// The first of the places where a client looks at which a daemon answers, ""
// when none does.
[[nodiscard]] std::string answering_socket(
    const std::vector<std::string>& candidates);

// "no daemon answers at A, B"
[[nodiscard]] std::string no_daemon_at(
    const std::vector<std::string>& candidates);

}  // namespace shp
