#include "daemon/session_table.h"

#include <fmt/format.h>

#include <cstring>

#include "common/jsonl/json_text.h"

namespace shp {
namespace {

constexpr size_t kPastKept = 256;

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(text, &out);
  return out;
}

std::string session_json(const Session& session) {
  const SessionRequest& request = session.request();
  const SessionFacts& facts = session.facts();
  const auto now = [](const std::atomic<uint64_t>& value) {
    return value.load(std::memory_order_relaxed);
  };
  return fmt::format(
      R"({{"pid":{},"host_pid":{},"uid":{},"session_id":{},"directory":{},)"
      R"("file":{},"started_realtime_ns":{},"written_spans":{},)"
      R"("dropped_spans":{},"blocks_used":{},"file_bytes":{},"state":"{}"}})",
      request.fixed.pid,
      request.peer.pid,
      request.peer.uid,
      quoted(request.texts[kSessionIdText]),
      quoted(request.texts[kDirectoryText]),
      quoted(request.texts[kFileNameText]),
      request.fixed.start.realtime_ns,
      now(facts.written_spans),
      now(facts.dropped_spans),
      now(facts.blocks_used),
      now(facts.file_bytes),
      facts.state.load(std::memory_order_relaxed));
}

}  // namespace

SessionTable::Entry* SessionTable::find(uint64_t id) {
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : &at->second;
}

Session* SessionTable::find(const uint8_t* token, uint32_t generation) {
  for (auto& [id, entry] : entries_) {
    if (entry.session->is(token, generation) && !entry.session->finished()) {
      return entry.session.get();
    }
  }
  return nullptr;
}

// A token is a secret of its client, but not one that another user may use
// against it.
std::shared_ptr<Session> SessionTable::running_of(const Peer& peer,
                                                  const uint8_t* token) {
  for (auto& [id, entry] : entries_) {
    Session& session = *entry.session;
    const Peer& other = session.request().peer;
    const bool same_process = peer.pid > 0 && other.pid == peer.pid;
    const bool same_arena = other.uid == peer.uid && session.has_token(token);
    if (!session.finished() && (same_process || same_arena)) {
      return entry.session;
    }
  }
  return nullptr;
}

void SessionTable::remember(const Session& session) {
  Past past{};
  std::memcpy(past.token, session.request().fixed.token, sizeof(past.token));
  past.generation = session.request().fixed.generation;
  past.uid = session.request().peer.uid;
  past.result = session.result();
  past_.push_back(std::move(past));
  if (past_.size() > kPastKept) {
    past_.pop_front();
  }
}

const SessionTable::Past* SessionTable::past(const uint8_t* token,
                                             uint32_t generation) const {
  for (const Past& past : past_) {
    if (past.generation == generation &&
        std::memcmp(past.token, token, sizeof(past.token)) == 0) {
      return &past;
    }
  }
  return nullptr;
}

int SessionTable::count_of(uid_t uid) const {
  int count = 0;
  for_each([&](const Session& session) {
    count += session.request().peer.uid == uid ? 1 : 0;
  });
  return count;
}

std::string SessionTable::json_for(uid_t uid) const {
  std::string out = "[";
  for_each([&](const Session& session) {
    if (uid == 0 || session.request().peer.uid == uid) {
      out += out.size() > 1 ? "," : "";
      out += session_json(session);
    }
  });
  return out + "]";
}

}  // namespace shp
