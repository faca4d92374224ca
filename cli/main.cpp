#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/parse.h"

// The verbs of `shp`, in the order that the help shows them.
static constexpr shp::AddCommand kCommands[] = {
    shp::add_run,
    shp::add_status,
    shp::add_top,
    shp::add_stats,
    shp::add_doctor,
    shp::add_export,
    shp::add_merge_dir,
};

int main(int argc, char** argv) {
  CLI::App app("Record host spans and read them beside the Torch trace.",
               "shp");
  app.set_version_flag("--version", "shp " SHP_VERSION);
  app.require_subcommand(1);
  int status = 0;
  for (const shp::AddCommand add : kCommands) {
    add(app, status);
  }
  return shp::parse_and_run(app, argc, argv, status);
}
