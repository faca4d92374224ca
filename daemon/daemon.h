// Daemon: the main thread's loop. It owns the listening socket, the connections
// that have not said their request yet, and the sessions; what it does with
// them is in connection.* and session.*.
//
// It never touches a client's directory or arena and never waits for a client:
// whatever may block is a session thread's business.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/protocol/seqpacket.h"
#include "daemon/connection.h"
#include "daemon/descriptor_store.h"
#include "daemon/listener.h"
#include "daemon/options.h"
#include "daemon/session_table.h"

namespace shp {

class Daemon {
 public:
  Daemon(const Options& options, UniqueFd keeper);

  // `inherited`: what an earlier shpd left with our supervisor.
  [[nodiscard]] Status open(std::vector<NamedFd> inherited);
  void run();

 private:
  // What an epoll event is about: the kind in the top byte, an id below.
  enum class Watch : uint64_t {
    kListener,
    kSignals,
    kDone,
    kConnection,
    kLifeLine,
    kProcess,
    kKeeper,
  };

  void watch(Watch kind, uint64_t id, int fd, uint32_t events);
  void unwatch(int fd);
  void handle(uint64_t data);
  void accept_all(uint64_t index);
  void pause_accepting();
  void serve(uint64_t id);
  void answer(Connection& connection);
  void answer_start(Connection& connection, ReceivedMessage& message);
  void answer_stop(Connection& connection, const ReceivedMessage& message);
  void answer_query(Connection& connection, const ReceivedMessage& message);
  void begin_session(Connection& connection, SessionRequest request);
  Status launch(SessionRequest request,
                UniqueFd life_line,
                std::shared_ptr<Session> before);
  void go_on_with(SessionRequest request);
  void process_ended(uint64_t id);
  void life_line_ended(uint64_t id);
  void collect_finished();
  void begin_shutdown();
  void give_way();
  void keeper_ended();
  void on_signal();
  int wait_ms() const;
  void on_time();
  bool is_idle() const;
  bool over();
  bool may_leave();

  Options options_;
  Supervisor supervisor_;
  DescriptorStore store_;
  Listener listener_;
  UniqueFd epoll_;
  UniqueFd signals_;
  UniqueFd done_;  // eventfd that session threads write
  std::map<uint64_t, Connection> connections_;
  SessionTable sessions_;
  uint64_t next_id_ = 1;
  uint64_t next_kept_ = 1;  // numbers of sessions in the store
  ClockSample early_;       // of the counter, for its rate
  int64_t started_ns_ = 0;
  int64_t idle_since_ns_ = 0;
  int64_t accept_again_ns_ = 0;   // 0: accepting
  int64_t shutdown_ends_ns_ = 0;  // 0: not shutting down
  int64_t watchdog_ns_ = 0;
  int64_t next_watchdog_ns_ = 0;
};

// Listens and serves until it is told to end. The exit status: 0 also when
// another daemon had the socket already.
[[nodiscard]] int run_worker(const Options& options,
                             std::vector<NamedFd> inherited,
                             UniqueFd keeper);

}  // namespace shp
