// SessionTable: the sessions that run and, for a while, what became of those
// that ran: a client whose stop() failed on a full disk may ask again. Main
// thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/protocol/messages.h"
#include "daemon/session.h"

namespace shp {

class SessionTable {
 public:
  struct Entry {
    std::shared_ptr<Session> session;
    UniqueFd life_line;  // the Start connection; empty once it hung up
    bool process_watched = false;
  };

  void add(uint64_t id, Entry entry) { entries_[id] = std::move(entry); }
  Entry* find(uint64_t id);
  // The running session that a StopRequest names, nullptr when there is none.
  Session* find(const uint8_t* token, uint32_t generation);
  // The running session of a process, or over an arena, of one user.
  std::shared_ptr<Session> running_of(const Peer& peer, const uint8_t* token);

  // Takes finished sessions out, joined; `drop` is called with each entry
  // first.
  template <typename Drop>
  void collect(Drop&& drop) {
    for (auto at = entries_.begin(); at != entries_.end();) {
      if (!at->second.session->finished()) {
        ++at;
        continue;
      }
      drop(at->second);
      at->second.session->join();
      remember(*at->second.session);
      at = entries_.erase(at);
    }
  }

  template <typename Use>
  void for_each(Use&& use) const {
    for (const auto& [id, entry] : entries_) {
      use(*entry.session);
    }
  }

  // What became of a session that this uid had; nullptr when forgotten.
  struct Past {
    uint8_t token[16];
    uint32_t generation;
    uid_t uid;
    SessionResult result;
  };
  const Past* past(const uint8_t* token, uint32_t generation) const;

  size_t size() const { return entries_.size(); }
  int count_of(uid_t uid) const;

  // The "sessions" array of a query's answer; `uid` sees its own, root all.
  [[nodiscard]] std::string json_for(uid_t uid) const;

 private:
  void remember(const Session& session);

  std::map<uint64_t, Entry> entries_;
  std::deque<Past> past_;
};

}  // namespace shp
