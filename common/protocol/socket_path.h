// Where shpd's socket is: one rule for the client, the daemon and the command
// line.
//
//   $SHP_SOCKET                          when set, and then nothing else
//   $XDG_RUNTIME_DIR/shp/shpd.sock       when that directory is this user's
//   /run/shp/shpd.sock                   the system's
//   /tmp/shp-UID/shpd.sock               last, directory 0700 and this user's
//
// A client tries socket_candidates() in order. A daemon that a user starts (by
// hand, by `shp run`, by the library) listens on own_socket_path(), which is
// always among that user's candidates. Nothing is kept; any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/base/result.h"

namespace shp {

inline constexpr const char* kSystemSocketPath = "/run/shp/shpd.sock";

// What the rule depends on, so that it can be tested. Null is "not set".
struct SocketEnvironment {
  const char* shp_socket = nullptr;
  const char* xdg_runtime_dir = nullptr;
  uid_t uid = 0;
  std::string run_directory = "/run/shp";
  std::string tmp_directory = "/tmp";
};
[[nodiscard]] SocketEnvironment current_socket_environment();

// Where a client looks, best first; never empty. A /tmp directory that is not
// this user's alone is left out.
[[nodiscard]] std::vector<std::string> socket_candidates(
    const SocketEnvironment& environment);

// Where a daemon of this user listens. Makes nothing.
[[nodiscard]] std::string own_socket_path(const SocketEnvironment& environment);

// Makes the directory of own_socket_path() where it is one of ours: 0700, for
// root's /run/shp 0755. Fails when it is somebody else's or a link.
[[nodiscard]] Status prepare_socket_directory(
    const SocketEnvironment& environment);

}  // namespace shp
