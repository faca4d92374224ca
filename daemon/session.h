// Session: one recording of one process, from its StartRequest to its file.
//
// Two threads meet here. The daemon's main thread makes it, and from then on
// only tells it things (order_stop, note_*), reads its facts and joins it. The
// session's own thread does all the rest, as the client (peer.h): it opens the
// arena and the file, answers the StartRequest, drains, publishes, answers the
// StopRequest.
//
//   launch ─► opening ─► recording ─► finishing ─► finished
//                 │            stop, exit, exec, shutdown
//                 └─ refused ──────────────────────► finished
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/protocol/messages.h"
#include "daemon/descriptor_store.h"
#include "daemon/peer.h"
#include "daemon/process.h"

namespace shp {

// What a StartRequest brought, copied out of its message.
struct SessionRequest {
  StartRequest fixed;
  std::array<std::string, kStartTexts> texts;
  UniqueFd arena;
  UniqueFd directory;
  Peer peer;
  PeerRights rights;
  UniqueFd life_line;        // the Start connection, which the daemon has too
  ClockSample daemon_start;  // an early look at the clocks, for the rate

  // ---- a session that another shpd began (session_keep.h) ------------------
  uint64_t kept_as = 0;  // its number in the descriptor store
  bool resumed = false;  // go on with its file and arena
  bool answered = false;
  uint32_t tries = 0;  // see session_keep.cpp
  UniqueFd file;       // what is written, spooled and known so far
  UniqueFd spool;
  UniqueFd state;
  std::optional<Reply> result;  // it had come to its end
};

struct SessionFacts {
  std::atomic<uint64_t> written_spans{0};
  std::atomic<uint64_t> dropped_spans{0};
  std::atomic<uint64_t> blocks_used{0};
  std::atomic<uint64_t> file_bytes{0};
  std::atomic<const char*> state{"opening"};
};

// What the main thread has said so far. Copied under the session's lock.
struct SessionNews {
  bool exited = false;
  ExitStatus exit_status;
  bool hung_up = false;
  bool replaced = false;    // its process started another session
  bool superseded = false;  // … over the same arena
  bool shutdown = false;
};

struct StopOrder {
  UniqueFd connection;
  ClockSample stop;
};

// What became of it, for a StopRequest that comes again.
struct SessionResult {
  Reply reply{};
  std::string text;
};

class Session {
 public:
  // `done_event` (an eventfd) is written when the thread is about to end.
  // `before`, when given, is finished before this one opens its arena.
  [[nodiscard]] static Result<std::shared_ptr<Session>> launch(
      SessionRequest request,
      int done_event,
      DescriptorStore& store,
      std::shared_ptr<Session> before);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // ---- main thread
  // -----------------------------------------------------------
  // False when it has finished: the result is the answer.
  [[nodiscard]] bool order_stop(StopOrder& order);
  void note_exit(ExitStatus status);
  void note_hang_up();
  void note_replaced(bool same_arena);
  void note_shutdown();
  bool finished() const {
    return finished_.load(std::memory_order_acquire) != 0;
  }
  void join();
  bool is(const uint8_t* token, uint32_t generation) const;
  bool has_token(const uint8_t* token) const;
  const SessionRequest& request() const { return request_; }
  const SessionFacts& facts() const { return facts_; }
  // After finished().
  const SessionResult& result() const { return result_; }

  // ---- the session's thread
  // ---------------------------------------------------
  SessionRequest& own_request() { return request_; }
  DescriptorStore& store() { return store_; }
  SessionNews news();
  std::vector<StopOrder> take_stop_orders();
  // Counts everything that was said; changes wake the thread.
  uint32_t said() const { return said_.load(std::memory_order_seq_cst); }
  // The word that the thread sleeps on, once there is one (ArenaHeader::wake).
  // It must stay readable until this is called with nullptr.
  void set_wake_word(std::atomic<uint32_t>* word);
  SessionFacts& facts() { return facts_; }
  // False when the predecessor does not come to its end.
  [[nodiscard]] bool wait_for_predecessor();
  // Answers the StartRequest; once.
  void answer_start(const Reply& reply, std::string_view text);
  // Answers the stops that nobody took yet, too.
  void finish(SessionResult result);

 private:
  Session(SessionRequest request,
          int done_event,
          DescriptorStore& store,
          std::shared_ptr<Session> before);
  static void* thread_main(void* self);
  template <typename Change>
  void tell(Change&& change);

  SessionRequest request_;
  int done_event_;
  DescriptorStore& store_;
  std::shared_ptr<Session> before_;
  pthread_t thread_{};
  bool joinable_ = false;

  std::mutex mutex_;
  SessionNews news_;
  std::vector<StopOrder> stop_orders_;
  std::atomic<uint32_t> said_{0};
  std::atomic<uint32_t>* wake_word_ = nullptr;  // under mutex_
  std::atomic<uint32_t> finished_{0};           // a futex word
  SessionFacts facts_;
  SessionResult result_;
};

}  // namespace shp
