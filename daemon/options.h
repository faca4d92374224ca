// shpd's command line.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace shp {

struct Options {
  std::string socket;        // empty: the rule of socket_path.h
  std::string socket_mode;   // octal; empty: 0666 for the system's, else 0600
  int exit_when_idle_s = 0;  // 0: never
  int max_sessions = 1024;   // of one user
  std::string log_level = "warn";
  bool keeper = true;  // where systemd is none

  // How this program was started, to start it again.
  std::string program;
  std::vector<std::string> arguments;
};

// Fills `options`; a value >= 0 is the status to exit with at once (after
// --help, --version or a mistake).
[[nodiscard]] int parse_options(int argc, char** argv, Options* options);

}  // namespace shp
