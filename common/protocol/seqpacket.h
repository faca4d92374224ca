// One message over a SOCK_SEQPACKET unix socket, with up to kMaxMessageFds
// descriptors: the only place that knows sendmsg, recvmsg and SCM_RIGHTS.
//
// Used by the client (libshp.so's start and stop), the daemon and the command
// line. Every socket and every received descriptor is close-on-exec, and every
// socket is non-blocking: waiting is poll() with a deadline. No SIGPIPE. A
// message that was cut, or that brought more descriptors than may come, is an
// error, and whatever descriptors did come are closed.
//
// errno_value of the errors: ETIMEDOUT (deadline passed), ECONNRESET (peer hung
// up), EMSGSIZE (message cut), else what the kernel said.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/protocol/messages.h"

namespace shp {

struct ReceivedMessage {
  std::string bytes;
  std::array<UniqueFd, kMaxMessageFds> fds;
  int fd_count = 0;
};

// Connects within `timeout_ms`. ENOENT and ECONNREFUSED: nobody listens.
// A path longer than sun_path goes through /proc/self/fd.
[[nodiscard]] Result<UniqueFd> connect_seqpacket(const std::string& path,
                                                 int timeout_ms);

// Binds `path`, which must not exist, sets `mode` on it and listens.
[[nodiscard]] Result<UniqueFd> listen_seqpacket(const std::string& path,
                                                mode_t mode,
                                                int backlog = 1024);

// The next waiting connection; EAGAIN when there is none.
[[nodiscard]] Result<UniqueFd> accept_seqpacket(int listener);

// `fd_count` descriptors of `fds` go along; they stay the caller's.
[[nodiscard]] Status send_message(int socket,
                                  std::string_view bytes,
                                  const int* fds,
                                  int fd_count,
                                  int timeout_ms);

[[nodiscard]] Result<ReceivedMessage> receive_message(int socket,
                                                      int timeout_ms);

}  // namespace shp
