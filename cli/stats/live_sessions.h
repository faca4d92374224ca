// The sessions of some daemons, looked at again and again: what they recorded
// since the last look. What `shp top` shows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/daemon_client.h"
#include "cli/stats/counter_stats.h"
#include "cli/stats/live_file.h"
#include "cli/stats/span_stats.h"
#include "common/base/result.h"

namespace shp {

struct LiveSession {
  SessionStatus status;    // as the daemon last told
  std::string problem;     // why its file cannot be read, empty when it can
  uint64_t new_spans = 0;  // since the last look
  uint64_t new_dropped = 0;
  bool ended = false;  // since the last look
};

class LiveSessions {
 public:
  // Takes what is new of these sessions: those that the daemons name now, each
  // daemon's behind the other's. The first look only finds out where it is.
  void look(const std::vector<SessionStatus>& recording);

  const std::vector<LiveSession>& sessions() const { return shown_; }
  const SpanStats& spans() const { return spans_; }
  const CounterStats& marks() const { return marks_; }
  double seconds() const { return seconds_; }  // since the look before

 private:
  struct Followed {
    LiveSession session;
    std::optional<LiveFile> file;
    uint64_t number = 0;
  };

  void meet(const SessionStatus& status, bool at_first);
  void read(Followed& followed);
  void forget_ended();

  std::map<std::string, Followed> followed_;  // by pid and session id
  std::vector<LiveSession> shown_;
  SpanStats spans_;
  CounterStats marks_;
  uint64_t met_ = 0;
  int64_t looked_ns_ = 0;    // CLOCK_MONOTONIC, 0 before the first look
  int64_t last_end_ns_ = 0;  // of the spans so far
  double seconds_ = 0;
};

}  // namespace shp
