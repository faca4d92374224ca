#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace shp {

void add_export(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "export", "Write closed host files as one Chrome trace");
  verb->callback([&status] { status = 1; });
}

}  // namespace shp
