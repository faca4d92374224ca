// Finds the daemons that record for this user: the one that clients take, and
// those that `shp run` started for one program each. For the verbs that look at
// or act on what is recorded now.
//
// One connection to each a call; nothing is kept. Root finds those of all
// users.
#pragma once

#include <string>
#include <vector>

#include "cli/daemon_client.h"
#include "common/base/result.h"
#include "common/protocol/socket_path.h"

namespace shp {

struct FoundDaemon {
  std::string socket;
  DaemonStatus status;
};

struct FoundDaemons {
  std::vector<FoundDaemon> daemons;
  // What answers, but not as a daemon of ours does. A line each.
  std::vector<std::string> problems;
};

// Where daemons may listen: where clients look, then where daemons of a
// `shp run` have their sockets (run-PID.sock), by name. With $SHP_SOCKET only
// that.
[[nodiscard]] std::vector<std::string> daemon_sockets(
    const SocketEnvironment& environment);

// Asks each of `sockets`.
[[nodiscard]] FoundDaemons ask_daemons(const std::vector<std::string>& sockets,
                                       int timeout_ms);

// Those at `socket`, or with "" at daemon_sockets() of now. An error when there
// is none: what is wrong with what answers, else where nobody does.
[[nodiscard]] Result<FoundDaemons> find_daemons(const std::string& socket,
                                                int timeout_ms);

}  // namespace shp
