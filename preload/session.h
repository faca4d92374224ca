// Sessions: one recording of this process, one host file. Control path: any
// thread, not from signal handlers; calls may block for as long as the daemon
// takes (start: milliseconds, stop: until the file is published) and allocate.
// Two threads that call at once are served one after the other.
//
// Errors carry errno_value where the system said no, so that Python can raise
// the right OSError; the program otherwise never sees a failure of ours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace shp::recorder {

struct StartOptions {
  std::string directory;             // made with its parents when missing
  std::string session_id;            // empty: the file's stem
  std::string file_prefix = "host";  // "python_host" from Python
};

struct StopReport {
  std::string path;  // of the published file
  uint64_t written_spans = 0;
  uint64_t dropped_spans = 0;
  uint64_t bad_args = 0;
};

// Messages of these two kinds of misuse, so that callers can tell them apart
// from failures by `errno_value`: EALREADY and ENOTCONN.
//   start: "Host collection is already active in this process"
//   stop:  "Host collection is not active"

// Begins the process's session; returns the absolute path that the file will
// have when it is published.
Result<std::string> start_session(const StartOptions& options);

// For by_itself.cpp: the session that SHP_OUTPUT_DIR asks for. It yields to one
// that the program starts, and is none that the program could stop.
Result<std::string> start_session_by_itself(const std::string& directory);

// Closes the gate and takes the stop sample. Spans that ended before are in.
// From here to publish_session only add_deferred writes.
Status freeze_session();

// Args for a span that ended with EndArgs::deferred == key. `json` empty: the
// args stay {} and count as bad.
void add_deferred(uint64_t key, std::string_view json);

// Asks the daemon to publish and waits for its answer. The session is over
// whatever the answer is.
Result<StopReport> publish_session();

// freeze_session + publish_session.
Result<StopReport> stop_session();

// The running session of this process (not of a parent that forked it).
struct ActiveSession {
  bool active = false;
  int pid = 0;
  std::string path;
};
ActiveSession active_session();

// The last stop() failed and nothing has been started since: publish_session()
// and stop_session() may be called again.
bool can_stop_again();

}  // namespace shp::recorder
