#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/daemon_client.h"
#include "common/base/clock.h"
#include "common/protocol/socket_path.h"

namespace shp {
namespace {

constexpr int kTimeoutMs = 5000;

struct StatusOptions {
  std::string socket;
  bool json = false;
};

bool is_absent(const Error& error) {
  return error.errno_value == ENOENT || error.errno_value == ECONNREFUSED;
}

double seconds_since(int64_t realtime_ns) {
  return static_cast<double>(clock_ns(CLOCK_REALTIME) - realtime_ns) / 1e9;
}

std::string duration(double seconds) {
  if (seconds < 120) {
    return fmt::format("{:.1f} s", seconds);
  }
  const auto minutes = static_cast<int64_t>(seconds) / 60;
  return minutes < 120 ? fmt::format("{} min", minutes)
                       : fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

void print_table(const std::string& socket, const DaemonStatus& status) {
  fmt::print("shpd {} pid {} at {}: {} session{}\n",
             status.version,
             status.pid,
             socket,
             status.sessions.size(),
             status.sessions.size() == 1 ? "" : "s");
  if (status.sessions.empty()) {
    return;
  }
  fmt::print("{:>8} {:>12} {:>10} {:>10}  {}\n",
             "PID",
             "SPANS",
             "LOST",
             "FOR",
             "FILE");
  for (const SessionStatus& session : status.sessions) {
    fmt::print("{:>8} {:>12} {:>10} {:>10}  {}/{}\n",
               session.pid,
               session.spans,
               session.dropped,
               duration(seconds_since(session.started_realtime_ns)),
               session.directory,
               session.file);
  }
}

int show(const StatusOptions& options,
         const std::string& socket,
         const DaemonStatus& status) {
  if (options.json) {
    fmt::print("{}\n", status.json);
  } else {
    print_table(socket, status);
  }
  return 0;
}

int show_status(const StatusOptions& options) {
  const auto candidates = options.socket.empty()
                              ? socket_candidates(current_socket_environment())
                              : std::vector<std::string>{options.socket};
  for (const std::string& socket : candidates) {
    const auto status = query_daemon(socket, kTimeoutMs);
    if (status) {
      return show(options, socket, *status);
    }
    if (!is_absent(status.error())) {
      fmt::print(stderr, "shp status: {}\n", status.error().message);
      return 1;
    }
  }
  fmt::print(stderr, "shp status: {}\n", no_daemon_at(candidates));
  return 1;
}

}  // namespace

void add_status(CLI::App& app, int& status) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* verb = app.add_subcommand(
      "status", "Show what the daemon records now, one line a session");
  verb->add_option("--socket", options->socket, "The daemon's socket");
  verb->add_flag("--json", options->json, "The daemon's own answer, as JSON");
  verb->footer(
      "Example:\n"
      "  shp status --json | python3 -m json.tool\n"
      "Exit status: 0 a daemon answered, 1 none did.");
  verb->callback([options, &status] { status = show_status(*options); });
}

}  // namespace shp
