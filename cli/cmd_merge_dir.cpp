#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace shp {

void add_merge_dir(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "merge-dir", "Put host spans into the Torch traces of a directory");
  verb->callback([&status] { status = 1; });
}

}  // namespace shp
