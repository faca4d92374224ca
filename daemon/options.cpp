#include "daemon/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

namespace shp {
namespace {

constexpr const char* kFooter = R"(
Examples:
  shpd                                 for this user, until it is stopped
  shpd --exit-when-idle 10             ends 10 s after the last session
  shpd --socket /tmp/my.sock --log-level info
  systemctl start shpd                 for all users of this host
  SHP_SOCKET=/tmp/my.sock LD_PRELOAD=libshp.so SHP_OUTPUT_DIR=out python3 app.py

The socket, unless --socket names one: $SHP_SOCKET, else
$XDG_RUNTIME_DIR/shp/shpd.sock, else /run/shp/shpd.sock, else
/tmp/shp-UID/shpd.sock. A second shpd on one socket ends at once with status 0.
SIGTERM and SIGINT publish every session and end the daemon. When it is killed,
its keeper (the process that was started) lets another go on with all sessions;
SIGUSR1 makes the keeper do that with the program as it is on disk: an upgrade.)";

// CLI11's check: an empty string is a pass.
std::string is_mode(const std::string& text) {
  const bool good = !text.empty() && text.size() <= 4 &&
                    text.find_first_not_of("01234567") == std::string::npos;
  return good ? "" : "not an octal mode: " + text;
}

}  // namespace

int parse_options(int argc, char** argv, Options* options) {
  CLI::App app("shpd: writes the spans of this host's processes to their files",
               "shpd");
  app.set_version_flag("--version", "shpd " SHP_VERSION);
  app.footer(kFooter);
  app.add_option("--socket", options->socket, "where to listen")
      ->type_name("PATH");
  app.add_option("--socket-mode",
                 options->socket_mode,
                 "who may connect (default: the system's 0666, else 0600)")
      ->type_name("OCTAL")
      ->check(is_mode);
  app.add_option("--exit-when-idle",
                 options->exit_when_idle_s,
                 "end after so long without a session")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--max-sessions",
                 options->max_sessions,
                 "sessions that one user may have at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--log-level",
                 options->log_level,
                 "what to say on stderr (default: warn)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember(
          {"trace", "debug", "info", "warn", "error", "critical", "off"}));
  app.add_flag(
      "!--no-keeper",
      options->keeper,
      "one process only: when it is killed, nobody goes on with its sessions");
  options->arguments.assign(argv, argv + argc);
  char path[4096];
  const ssize_t got = readlink("/proc/self/exe", path, sizeof(path));
  options->program.assign(path, got > 0 ? static_cast<size_t>(got) : 0);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return -1;
}

}  // namespace shp
