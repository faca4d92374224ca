#include <fmt/format.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/daemons.h"
#include "cli/run/report.h"
#include "cli/stats/live_sessions.h"
#include "cli/stats/stats_text.h"
#include "cli/stats/table_options.h"
#include "cli/terminal_text.h"
#include "common/jsonl/json_check.h"

namespace shp {
namespace {

constexpr int kTimeoutMs = 5000;
constexpr double kShortestInterval = 0.1;
constexpr double kLongestInterval = 3600;
constexpr size_t kSessionsShown = 8;
constexpr size_t kLeastRows = 5;

struct TopOptions {
  std::string socket;
  std::optional<int64_t> pid;
  std::string sort = "total";
  double interval_s = 2;
  uint64_t looks = 0;  // 0: until it is interrupted
  bool json = false;
};

struct Screen {
  bool is_terminal = false;
  size_t rows = 0;  // 0: no end
  size_t columns = 0;
};

Screen screen_of(int fd) {
  winsize size{};
  if (isatty(fd) == 0 || ioctl(fd, TIOCGWINSZ, &size) != 0) {
    return {isatty(fd) != 0, 0, 0};
  }
  return {true, size.ws_row, size.ws_col};
}

std::string clock_time() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  return fmt::format(
      "{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string lost(uint64_t all, uint64_t fresh) {
  return fresh == 0
             ? with_commas(all)
             : fmt::format("{} (+{})", with_commas(all), with_commas(fresh));
}

std::string sessions_table(const LiveSessions& live) {
  std::string out = fmt::format("{:>8} {:>9} {:>13} {:>16}  {}\n",
                                "PID",
                                "PER S",
                                "SPANS",
                                "LOST",
                                "FILE");
  size_t shown = 0;
  for (const LiveSession& session : live.sessions()) {
    if (shown++ == kSessionsShown) {
      out += fmt::format("{:>8} more sessions\n",
                         live.sessions().size() - kSessionsShown);
      break;
    }
    out += fmt::format("{:>8} {:>9} {:>13} {:>16}  {}{}\n",
                       session.status.pid,
                       short_rate(session.new_spans, live.seconds()),
                       with_commas(session.status.spans),
                       lost(session.status.dropped, session.new_dropped),
                       for_terminal(session.status.file),
                       session.ended ? " (ended)"
                       : session.problem.empty()
                           ? ""
                           : " (" + for_terminal(session.problem) + ")");
  }
  return out;
}

std::string page(const LiveSessions& live,
                 const TopOptions& options,
                 const Screen& screen) {
  std::string out = fmt::format(
      "shp top {}, last {:.1f} s: {} session{}, {} spans a second\n",
      clock_time(),
      live.seconds(),
      live.sessions().size(),
      live.sessions().size() == 1 ? "" : "s",
      short_rate(live.spans().spans(), live.seconds()));
  out += sessions_table(live) + "\n";
  const auto marks = live.marks().rows();
  const std::string counters =
      marks.empty() ? "" : "\n" + counter_table(marks, live.seconds());
  const auto lines = [](const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  const size_t used = lines(out) + lines(counters) + 3;
  std::vector<NameRow> rows = live.spans().rows();
  sort_rows(rows, options.sort);
  TableShape shape{live.seconds(), 0, screen.columns};
  if (screen.rows > 0) {
    shape.most_rows =
        std::max(kLeastRows, screen.rows - std::min(screen.rows, used));
  }
  return out + stats_table(rows, shape) + counters;
}

std::string session_json(const LiveSession& session) {
  return fmt::format(
      R"({{"pid":{},"session_id":{},"file":{},"new_spans":{},"spans":{},)"
      R"("dropped":{},"new_dropped":{},"ended":{},"problem":{}}})",
      session.status.pid,
      json_quote(session.status.session_id),
      json_quote(session.status.directory + "/" + session.status.file),
      session.new_spans,
      session.status.spans,
      session.status.dropped,
      session.new_dropped,
      session.ended,
      session.problem.empty() ? "null" : json_quote(session.problem));
}

std::string look_json(const LiveSessions& live, const TopOptions& options) {
  std::string sessions;
  for (const LiveSession& session : live.sessions()) {
    sessions += (sessions.empty() ? "" : ",") + session_json(session);
  }
  std::vector<NameRow> rows = live.spans().rows();
  sort_rows(rows, options.sort);
  return fmt::format(
      R"({{"seconds":{:.6g},"sessions":[{}],"names":{},"marks":{}}})"
      "\n",
      live.seconds(),
      sessions,
      stats_json(rows, live.seconds()),
      counter_json(live.marks().rows()));
}

// False when nobody reads any more.
bool show(const LiveSessions& live, const TopOptions& options) {
  const Screen screen = screen_of(STDOUT_FILENO);
  std::string text =
      options.json ? look_json(live, options) : page(live, options, screen);
  if (!options.json) {
    // Home, and what is left of the page before cleared behind the new one.
    text = screen.is_terminal ? "\033[H\033[2J" + text : text + "\n";
  }
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

std::vector<SessionStatus> sessions_of(const FoundDaemons& found,
                                       std::optional<int64_t> pid) {
  std::vector<SessionStatus> sessions;
  for (const FoundDaemon& daemon : found.daemons) {
    for (const SessionStatus& session : daemon.status.sessions) {
      if (!pid || session.pid == *pid) {
        sessions.push_back(session);
      }
    }
  }
  return sessions;
}

// A daemon has to be there at first. Later ones come and go.
int run_top(const TopOptions& options) {
  Result<FoundDaemons> found = find_daemons(options.socket, kTimeoutMs);
  if (!found) {
    say_error("top", found.error().message);
    return 1;
  }
  LiveSessions live;
  live.look(sessions_of(*found, options.pid));
  for (uint64_t look = 0; options.looks == 0 || look < options.looks; ++look) {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(options.interval_s));
    found = find_daemons(options.socket, kTimeoutMs);
    live.look(sessions_of(found.value_or(FoundDaemons()), options.pid));
    if (!show(live, options)) {
      return 0;
    }
  }
  return 0;
}

}  // namespace

void add_top(CLI::App& app, int& status) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* verb = app.add_subcommand(
      "top", "Watch what is being recorded: spans by name, times, losses");
  verb->add_option("--socket", options->socket, "The daemon's socket");
  verb->add_option("-p,--pid", options->pid, "Only this process");
  add_sort_option(*verb, options->sort);
  verb->add_option(
          "-i,--interval", options->interval_s, "Seconds between two looks")
      ->check(CLI::Range(kShortestInterval, kLongestInterval))
      ->capture_default_str();
  verb->add_option("-n,--looks", options->looks, "End after so many; 0: never");
  verb->add_flag(
      "--json", options->json, "A line of JSON for each look, times in ns");
  verb->footer(
      std::string("Example:\n"
                  "  shp top --sort p99\n"
                  "  shp top --json -n 1 -i 5 | python3 -m json.tool\n\n"
                  "Spans count when they end. ") +
      "What ended since the last look is shown, and what is lost in all.\n\n" +
      kColumnsHelp);
  verb->callback([options, &status] { status = run_top(*options); });
}

}  // namespace shp
