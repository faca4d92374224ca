// The host's side: library, daemon, clock.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/daemon_client.h"
#include "cli/doctor/checks.h"
#include "cli/run/locate.h"
#include "common/base/clock.h"
#include "common/protocol/socket_path.h"

namespace shp {
namespace {

constexpr int kTimeoutMs = 3000;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && *value != '0';
}

bool nobody_there(const Error& error) {
  return error.errno_value == ENOENT || error.errno_value == ECONNREFUSED ||
         error.errno_value == ENOTDIR;
}

void note_version(const std::string& socket,
                  const DaemonStatus& status,
                  Findings* out) {
  if (status.version == SHP_VERSION) {
    out->push_back({Verdict::kGood,
                    fmt::format("shpd {} (pid {}) answers at {}",
                                status.version,
                                status.pid,
                                socket),
                    ""});
    return;
  }
  out->push_back({Verdict::kBad,
                  fmt::format("shpd at {} is of version {}, shp of {}",
                              socket,
                              status.version,
                              SHP_VERSION),
                  "install one release of all three; `systemctl restart shpd` "
                  "runs the new one, sessions go on"});
}

void no_daemon(const std::vector<std::string>& candidates, Findings* out) {
  const Result<std::string> program = find_daemon(own_folder());
  if (is_set("SHP_NO_SPAWN")) {
    out->push_back({Verdict::kBad,
                    "no shpd answers, and SHP_NO_SPAWN forbids starting one",
                    "`systemctl start shpd`, or unset SHP_NO_SPAWN"});
  } else if (!program) {
    out->push_back({Verdict::kBad,
                    "no shpd answers, and none was found to start",
                    "install shpd beside shp, or name it in SHP_DAEMON"});
  } else {
    out->push_back({Verdict::kNote,
                    fmt::format("no shpd runs (looked at {}); the first "
                                "recording starts {}",
                                candidates.front(),
                                *program),
                    ""});
  }
}

}  // namespace

void check_library(const Patient&, Findings* out) {
  const Result<std::string> library = find_library(own_folder());
  if (library) {
    out->push_back({Verdict::kGood, "the recorder is " + *library, ""});
  } else {
    out->push_back({Verdict::kBad,
                    "libshp.so was not found",
                    "install it beside shp, or name it in SHP_LIB"});
  }
  const char* enabled = std::getenv("HOST_SERVICE_PROFILER_ENABLE");
  if (enabled != nullptr && std::string_view(enabled) == "0") {
    out->push_back({Verdict::kBad,
                    "HOST_SERVICE_PROFILER_ENABLE=0 turns recording off",
                    "unset it"});
  }
}

void check_daemon(const Patient&, Findings* out) {
  const auto candidates = socket_candidates(current_socket_environment());
  for (const std::string& socket : candidates) {
    const auto status = query_daemon(socket, kTimeoutMs);
    if (status) {
      return note_version(socket, *status, out);
    }
    if (status.error().errno_value == EACCES) {
      out->push_back({Verdict::kBad,
                      "no right to connect to " + socket,
                      "the system's socket is for all (SocketMode=0666 in "
                      "shpd.socket); another user's is not for you: look at "
                      "SHP_SOCKET"});
      return;
    }
    if (!nobody_there(status.error())) {
      out->push_back({Verdict::kBad,
                      socket + ": " + status.error().message,
                      "something listens there that is no shpd of this "
                      "release, or hangs: restart it"});
      return;
    }
  }
  no_daemon(candidates, out);
}

void check_clock(const Patient&, Findings* out) {
  switch (best_clock_kind()) {
    case ClockKind::kTsc:
      out->push_back({Verdict::kGood, "spans are timed by the CPU's TSC", ""});
      return;
    case ClockKind::kCntvct:
      out->push_back({Verdict::kGood, "spans are timed by cntvct_el0", ""});
      return;
    case ClockKind::kMonotonic:
      out->push_back({Verdict::kNote,
                      "the TSC cannot be trusted here: spans are timed by "
                      "CLOCK_MONOTONIC, at some 25 ns more each",
                      "see /sys/devices/system/clocksource/clocksource0/"
                      "current_clocksource and dmesg | grep -i tsc"});
  }
}

}  // namespace shp
