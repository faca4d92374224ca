#include "preload/daemon_link.h"

#include <errno.h>
#include <time.h>

#include <cstdlib>

#include "common/base/clock.h"
#include "common/protocol/seqpacket.h"
#include "common/protocol/socket_path.h"
#include "preload/spawn.h"

namespace shp::recorder {
namespace {

constexpr int kConnectMs = 2000;
constexpr int64_t kSpawnWaitNs = 5'000'000'000;

bool nobody_listens(int errno_value) {
  return errno_value == ENOENT || errno_value == ECONNREFUSED ||
         errno_value == ENOTDIR || errno_value == EACCES;
}

Result<UniqueFd> try_connect() {
  Result<UniqueFd> socket = error("no socket path");
  for (const std::string& path :
       socket_candidates(current_socket_environment())) {
    socket = connect_seqpacket(path, kConnectMs);
    if (socket || !nobody_listens(socket.error().errno_value)) {
      break;
    }
  }
  return socket;
}

// Without an errno: a missing socket is no missing output directory, which is
// what the caller's ENOENT would look like.
tl::unexpected<Error> unreachable(std::string_view what, const Error& why) {
  Error error = context(what, why).value();
  error.errno_value = 0;
  return tl::unexpected<Error>(std::move(error));
}

void nap() {
  const timespec pause{0, 2'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

Result<UniqueFd> connect_daemon(bool may_spawn) {
  Result<UniqueFd> socket = try_connect();
  if (socket || !nobody_listens(socket.error().errno_value)) {
    return socket;
  }
  const char* forbidden = std::getenv("SHP_NO_SPAWN");
  const bool asked_not_to =
      forbidden != nullptr && forbidden[0] != '\0' && forbidden[0] != '0';
  if (!may_spawn || asked_not_to) {
    std::string message = "no shpd answers";
    message += asked_not_to ? " and SHP_NO_SPAWN forbids starting one" : "";
    return unreachable(message, socket.error());
  }
  const Status spawned = spawn_daemon();
  if (!spawned) {
    return unreachable("no shpd answers and none could be started",
                       spawned.error());
  }
  const int64_t deadline = monotonic_ns() + kSpawnWaitNs;
  do {
    nap();
    socket = try_connect();
  } while (!socket && nobody_listens(socket.error().errno_value) &&
           monotonic_ns() < deadline);
  if (!socket) {
    return unreachable("shpd was started but does not answer", socket.error());
  }
  return socket;
}

Result<DaemonReply> ask_daemon(int socket,
                               std::string_view request,
                               const int* fds,
                               int fd_count,
                               int timeout_ms) {
  const Status sent = send_message(socket, request, fds, fd_count, timeout_ms);
  if (!sent) {
    return context("shpd", sent.error());
  }
  const Result<ReceivedMessage> received = receive_message(socket, timeout_ms);
  if (!received) {
    return context("shpd", received.error());
  }
  const Result<ReplyMessage> reply = unpack_reply(received->bytes);
  if (!reply) {
    return context("shpd", reply.error());
  }
  if (reply->fixed.code != static_cast<uint32_t>(ReplyCode::kOk)) {
    return tl::unexpected<Error>(
        Error{std::string(reply->text), reply->fixed.errno_value});
  }
  return DaemonReply{reply->fixed.written_spans,
                     reply->fixed.dropped_spans,
                     reply->fixed.bad_args};
}

}  // namespace shp::recorder
