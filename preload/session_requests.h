// What a session says to its daemon (common/protocol/messages.h), and what it
// does when that daemon is gone: asks again, and hands its arena to another.
// Control path; under the session lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "preload/daemon_link.h"

namespace shp::recorder {

struct SessionNames {
  std::string_view session_id;
  std::string_view file;
  std::string_view directory;
};

// A StartRequest of this process's arena, begun now.
Result<std::string> start_message(const SessionNames& names,
                                  uint32_t generation);

// Sends it. The connection that stays open. `flags`: StartFlag, less kHasPidfd.
Result<UniqueFd> send_start(std::string message, int directory, uint32_t flags);

// The daemon went while it was asked.
bool was_cut_off(const Error& why);

struct StopAsked {
  const std::string& start_message;
  const std::string& directory;
  uint32_t generation;
  ClockSample stop;
};

// A daemon that died while it was asked, or just before, is asked again when it
// is back. Where none comes back, one is started, and gets the arena.
Result<DaemonReply> ask_to_stop(const StopAsked& asked);

}  // namespace shp::recorder
