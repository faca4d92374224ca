// How the recorder reaches its daemon: finding it, starting one where none
// answers, and one request with its reply. Control path only.
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/protocol/message_codec.h"

namespace shp::recorder {

// A fresh connection. With `may_spawn` (and no SHP_NO_SPAWN=1) a daemon for
// this user is started from beside libshp.so when none answers.
Result<UniqueFd> connect_daemon(bool may_spawn);

struct DaemonReply {
  uint64_t written_spans = 0;
  uint64_t dropped_spans = 0;
  uint64_t bad_args = 0;
};

// Sends and waits; a reply that is no kOk becomes an Error with the daemon's
// line and errno.
Result<DaemonReply> ask_daemon(int socket,
                               std::string_view request,
                               const int* fds,
                               int fd_count,
                               int timeout_ms);

}  // namespace shp::recorder
