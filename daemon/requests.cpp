// The three requests that a client can make of the daemon, answered. Part of
// Daemon; main thread.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include "common/jsonl/json_text.h"
#include "common/protocol/message_codec.h"
#include "common/protocol/seqpacket.h"
#include "common/shm/arena_abi.h"
#include "daemon/daemon.h"
#include "daemon/reply.h"

namespace shp {
namespace {

std::string packed(ReplyCode code, std::string_view text) {
  Reply reply{};
  reply.code = static_cast<uint32_t>(code);
  return pack_reply(reply, text);
}

bool may_use(const Peer& peer) {
  const uid_t own = geteuid();
  return own == 0 || peer.uid == own;
}

// A message of another protocol version gets a clear word, whatever it says.
bool speaks_other_version(const ReceivedMessage& message, std::string* reply) {
  const Result<MessageHeader> header = unpack_header(message.bytes);
  if (!header || header->version == kProtocolVersion) {
    return false;
  }
  *reply = packed(
      ReplyCode::kVersion,
      fmt::format("protocol version {}, but shpd {} speaks {}: libshp.so and "
                  "shpd are of different releases",
                  header->version,
                  SHP_VERSION,
                  kProtocolVersion));
  return true;
}

SessionRequest session_request(const StartMessage& start,
                               ReceivedMessage& message) {
  SessionRequest request;
  request.fixed = start.fixed;
  for (size_t i = 0; i < kStartTexts; ++i) {
    request.texts[i] = start.texts[i];
  }
  request.arena = std::move(message.fds[kArenaFd]);
  request.directory = std::move(message.fds[kDirectoryFd]);
  return request;
}

}  // namespace

void Daemon::answer(Connection& connection) {
  Result<ReceivedMessage> message = receive_message(connection.fd.get(), 0);
  if (!message) {
    if (message.error().errno_value == EMSGSIZE) {
      connection.answers.push_back(
          packed(ReplyCode::kRefused, message.error().message));
    }
    return;
  }
  if (!may_use(connection.peer)) {
    connection.answers.push_back(
        packed(ReplyCode::kRefused,
               fmt::format("this shpd serves uid {} only", geteuid())));
    return;
  }
  std::string other_version;
  if (speaks_other_version(*message, &other_version)) {
    connection.answers.push_back(std::move(other_version));
    return;
  }
  const Result<MessageHeader> header = unpack_header(message->bytes);
  const auto type =
      header ? static_cast<MessageType>(header->type) : MessageType::kReply;
  switch (type) {
    case MessageType::kStart:
      return answer_start(connection, *message);
    case MessageType::kStop:
      return answer_stop(connection, *message);
    case MessageType::kQuery:
      return answer_query(connection, *message);
    default:
      connection.answers.push_back(
          packed(ReplyCode::kRefused, "not a request"));
  }
}

void Daemon::answer_start(Connection& connection, ReceivedMessage& message) {
  const auto refuse = [&](ReplyCode code, std::string_view why) {
    connection.answers.push_back(packed(code, why));
  };
  const Result<StartMessage> start = unpack_start(message.bytes);
  if (!start) {
    return refuse(ReplyCode::kRefused, start.error().message);
  }
  if (start->fixed.abi_version != kAbiVersion) {
    return refuse(
        ReplyCode::kVersion,
        fmt::format("arena of ABI version {}, but shpd {} reads {}: libshp.so "
                    "and shpd are of different releases",
                    start->fixed.abi_version,
                    SHP_VERSION,
                    kAbiVersion));
  }
  if (message.fd_count < 2) {
    return refuse(ReplyCode::kRefused, "arena or directory did not come along");
  }
  if (shutdown_ends_ns_ != 0) {
    return refuse(ReplyCode::kShuttingDown, "shpd is ending");
  }
  const bool resume = (start->fixed.flags & kResume) != 0;
  if (const Session* running =
          sessions_.find(start->fixed.token, start->fixed.generation);
      resume && running != nullptr &&
      running->request().peer.uid == connection.peer.uid) {
    return refuse(ReplyCode::kOk, "");
  }
  if (sessions_.count_of(connection.peer.uid) >= options_.max_sessions) {
    return refuse(ReplyCode::kRefused,
                  fmt::format("this user has {} sessions already",
                              options_.max_sessions));
  }
  SessionRequest request = session_request(*start, message);
  request.resumed = resume;
  const bool brought_pidfd =
      (start->fixed.flags & kHasPidfd) != 0 && message.fd_count > kPidfd;
  if (!connection.peer.pidfd && brought_pidfd) {
    connection.peer.pidfd = std::move(message.fds[kPidfd]);
  }
  begin_session(connection, std::move(request));
}

void Daemon::begin_session(Connection& connection, SessionRequest request) {
  request.peer = std::move(connection.peer);
  request.rights = rights_of(request.peer);
  request.life_line.reset(dup_cloexec(connection.fd.get()));
  request.kept_as = next_kept_++;
  request.daemon_start = early_;
  std::shared_ptr<Session> before =
      sessions_.running_of(request.peer, request.fixed.token);
  if (before) {
    // One process, one session: the old one's program has been replaced, or
    // has given it up; or it has ended and we are about to hear of it.
    const UniqueFd& old = before->request().peer.pidfd;
    const bool same_arena = before->has_token(request.fixed.token);
    if (!same_arena && old && has_exited(old.get())) {
      before.reset();
    } else {
      before->note_replaced(same_arena);
      before = same_arena ? before : nullptr;
    }
  }
  const Status launched =
      launch(std::move(request), std::move(connection.fd), std::move(before));
  if (!launched) {
    connection.answers.push_back(
        packed(ReplyCode::kRefused, launched.error().message));
  }
}

void Daemon::answer_stop(Connection& connection,
                         const ReceivedMessage& message) {
  const auto refuse = [&](std::string_view why) {
    connection.answers.push_back(packed(ReplyCode::kRefused, why));
  };
  const Result<StopRequest> stop = unpack_stop(message.bytes);
  if (!stop) {
    return refuse(stop.error().message);
  }
  const uid_t uid = connection.peer.uid;
  if (Session* session = sessions_.find(stop->token, stop->generation)) {
    if (uid != 0 && uid != session->request().peer.uid) {
      return refuse("not your session");
    }
    StopOrder order{std::move(connection.fd), stop->stop};
    if (session->order_stop(order)) {
      return;
    }
    connection.fd = std::move(order.connection);
  }
  collect_finished();  // one that has just ended may not be in the past yet
  const SessionTable::Past* past =
      sessions_.past(stop->token, stop->generation);
  if (past == nullptr || (uid != 0 && uid != past->uid)) {
    Reply none{};
    none.code = static_cast<uint32_t>(ReplyCode::kRefused);
    none.errno_value = ESRCH;
    connection.answers.push_back(pack_reply(none, "no such session"));
    return;
  }
  connection.answers.push_back(
      pack_reply(past->result.reply, past->result.text));
}

void Daemon::answer_query(Connection& connection,
                          const ReceivedMessage& message) {
  if (const Status query = unpack_query(message.bytes); !query) {
    connection.answers.push_back(
        packed(ReplyCode::kRefused, query.error().message));
    return;
  }
  std::string socket;
  append_json_string(listener_.path(), &socket);
  const std::string text = fmt::format(
      R"({{"version":"{}","pid":{},"worker_pid":{},"uptime_s":{:.3f},"socket":{},)"
      R"("sessions":{}}})",
      SHP_VERSION,
      supervisor_.keeper() >= 0 ? getppid() : getpid(),
      getpid(),
      static_cast<double>(monotonic_ns() - started_ns_) / 1e9,
      socket,
      sessions_.json_for(connection.peer.uid));
  for (size_t at = 0; at < text.size(); at += kMaxQueryText) {
    const bool more = text.size() - at > kMaxQueryText;
    connection.answers.push_back(pack_query_reply(
        more, std::string_view(text).substr(at, kMaxQueryText)));
  }
}

}  // namespace shp
