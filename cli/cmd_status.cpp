#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/daemons.h"
#include "cli/terminal_text.h"
#include "common/base/clock.h"

namespace shp {
namespace {

constexpr int kTimeoutMs = 5000;

struct StatusOptions {
  std::string socket;
  bool json = false;
};

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
             for_terminal(status.version),
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
    fmt::print("{:>8} {:>12} {:>10} {:>10}  {}\n",
               session.pid,
               session.spans,
               session.dropped,
               duration(seconds_since(session.started_realtime_ns)),
               for_terminal(session.directory + "/" + session.file));
  }
}

int show_status(const StatusOptions& options) {
  const Result<FoundDaemons> found = find_daemons(options.socket, kTimeoutMs);
  if (!found) {
    say_error("status", found.error().message);
    return 1;
  }
  for (const std::string& problem : found->problems) {
    say_error("status", problem);
  }
  for (const FoundDaemon& daemon : found->daemons) {
    if (options.json) {
      fmt::print("{}\n", daemon.status.json);
    } else {
      print_table(daemon.socket, daemon.status);
    }
  }
  return found->problems.empty() ? 0 : 1;
}

}  // namespace

void add_status(CLI::App& app, int& status) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* verb = app.add_subcommand(
      "status", "Show what is recorded now, one line a session");
  verb->add_option("--socket", options->socket, "The daemon's socket");
  verb->add_flag("--json",
                 options->json,
                 "The daemon's own answer, as JSON: a line for each daemon");
  verb->footer(
      "Example:\n"
      "  shp status --json | python3 -m json.tool\n"
      "Also finds the daemons that `shp run` started for its programs.\n"
      "Exit status: 0 a daemon answered, 1 none did, or not as it should.");
  verb->callback([options, &status] { status = show_status(*options); });
}

}  // namespace shp
