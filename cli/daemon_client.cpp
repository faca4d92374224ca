#include "cli/daemon_client.h"

#include <rapidjson/document.h>

#include "common/protocol/message_codec.h"
#include "common/protocol/seqpacket.h"

namespace shp {
namespace {

using rapidjson::Value;

constexpr size_t kMaxAnswerBytes = 64U << 20;
constexpr int kProbeMs = 2000;

const Value* member(const Value& object, const char* key) {
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

void take(const Value& object, const char* key, std::string& out) {
  if (const Value* value = member(object, key); value && value->IsString()) {
    out.assign(value->GetString(), value->GetStringLength());
  }
}

void take(const Value& object, const char* key, int64_t& out) {
  if (const Value* value = member(object, key); value && value->IsInt64()) {
    out = value->GetInt64();
  }
}

void take(const Value& object, const char* key, uint64_t& out) {
  if (const Value* value = member(object, key); value && value->IsUint64()) {
    out = value->GetUint64();
  }
}

SessionStatus session_of(const Value& object) {
  SessionStatus session;
  take(object, "pid", session.pid);
  take(object, "host_pid", session.pid);
  take(object, "session_id", session.session_id);
  take(object, "directory", session.directory);
  take(object, "file", session.file);
  take(object, "state", session.state);
  take(object, "written_spans", session.spans);
  take(object, "dropped_spans", session.dropped);
  take(object, "started_realtime_ns", session.started_realtime_ns);
  return session;
}

// The pieces of the answer, put together; the daemon is not believed to stop.
Result<std::string> receive_answer(int socket, int timeout_ms) {
  std::string answer;
  while (answer.size() < kMaxAnswerBytes) {
    auto message = receive_message(socket, timeout_ms);
    if (!message) {
      return tl::unexpected(message.error());
    }
    if (const auto refusal = unpack_reply(message->bytes)) {
      return error(std::string(refusal->text));
    }
    const auto piece = unpack_query_reply(message->bytes);
    if (!piece) {
      return tl::unexpected(piece.error());
    }
    answer += piece->text;
    if (!piece->more) {
      return answer;
    }
  }
  return error("the answer has no end");
}

}  // namespace

Result<DaemonStatus> parse_status(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return error("the daemon's answer is no JSON object");
  }
  DaemonStatus status;
  status.json = json;
  take(document, "pid", status.pid);
  take(document, "version", status.version);
  if (const Value* sessions = member(document, "sessions");
      sessions && sessions->IsArray()) {
    for (const Value& session : sessions->GetArray()) {
      if (session.IsObject()) {
        status.sessions.push_back(session_of(session));
      }
    }
  }
  return status;
}

Result<DaemonStatus> query_daemon(const std::string& socket, int timeout_ms) {
  const auto connection = connect_seqpacket(socket, timeout_ms);
  if (!connection) {
    return tl::unexpected(connection.error());
  }
  if (auto sent =
          send_message(connection->get(), pack_query(), nullptr, 0, timeout_ms);
      !sent) {
    return tl::unexpected(sent.error());
  }
  const auto answer = receive_answer(connection->get(), timeout_ms);
  if (!answer) {
    return context(socket, answer.error());
  }
  return parse_status(*answer);
}

std::string answering_socket(const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    if (query_daemon(candidate, kProbeMs)) {
      return candidate;
    }
  }
  return "";
}

std::string no_daemon_at(const std::vector<std::string>& candidates) {
  std::string places;
  for (const std::string& path : candidates) {
    places += (places.empty() ? "" : ", ") + path;
  }
  return "no daemon answers at " + places;
}

}  // namespace shp
