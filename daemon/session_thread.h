// The life of a session on its own thread; see session.h. session_thread.cpp
// has its opening and recording, session_finish.cpp its end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/jsonl/line_writer.h"
#include "common/shm/arena_view.h"
#include "daemon/drain.h"
#include "daemon/end_reason.h"
#include "daemon/session.h"
#include "daemon/session_clock.h"
#include "daemon/session_file.h"
#include "daemon/session_keep.h"

namespace shp {

class SessionThread {
 public:
  explicit SessionThread(Session& session);
  void run();

 private:
  Status open();
  Status open_arena();
  Status check_request() const;
  Status open_file(uint64_t committed_bytes);
  void open_drain(const std::optional<Drain::Committed>& committed);
  HostFileMetadata first_metadata() const;
  void record();
  EndReason why_end();
  EndReason why_gone(const SessionNews& news);
  bool was_replaced_by_exec();
  void drain_once();
  void commit();
  void write_clock_line(const ClockSample& sample);
  void nap();
  void note_facts();

  void finish(EndReason reason);
  ClockSample stop_sample(EndReason reason);
  void write_last_lines(EndReason reason, const ClockSample& stop);
  HostFileMetadata last_metadata(EndReason reason, const ClockSample& stop);
  void conclude(const Status& published, const HostFileMetadata& metadata);

  void publish_again();

  bool wait_while_stuck(const Error& why);
  void hear_stops();
  void answer_stops(const Reply& reply, std::string_view text);
  void refuse(const Error& why);

  Session& session_;
  const SessionRequest& request_;
  std::string label_;
  SessionKeep keep_;
  std::optional<ArenaView> arena_;
  std::optional<SessionClock> clock_;
  SessionFile file_;
  LineWriter writer_;
  DeferredSpool spool_;
  std::optional<Drain> drain_;

  uint32_t heard_ = 0;      // Session::said() as of the last look
  uint32_t wake_seen_ = 0;  // ArenaHeader::wake before the last round
  int64_t nap_ns_ = 0;
  int64_t round_began_ns_ = 0;
  int64_t next_clock_line_ns_ = 0;
  int64_t began_ns_ = 0;
  int64_t next_facts_ns_ = 0;
  bool looked_for_exec_ = false;
  bool going_well_ = false;
  SessionNews last_news_;
  std::optional<ClockSample> stop_;  // of a StopRequest, once there was one
  std::vector<UniqueFd> stop_connections_;
  int64_t gives_up_ns_ = 0;
};

// Runs the session to its end and calls session.finish().
void run_session(Session& session);

}  // namespace shp
