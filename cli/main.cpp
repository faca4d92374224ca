#include <iostream>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/run/command_mark.h"

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

static int usage_error(const CLI::App& app, const CLI::ParseError& problem) {
  const auto verbs = app.get_subcommands();
  std::cerr << "shp" << (verbs.empty() ? "" : " " + verbs.front()->get_name())
            << ": " << problem.what() << "\n";
  return 2;
}

int main(int argc, char** argv) {
  CLI::App app("Record host spans and read them beside the Torch trace.",
               "shp");
  app.set_version_flag("--version", "shp " SHP_VERSION);
  app.require_subcommand(1);
  int status = 0;
  for (const shp::AddCommand add : kCommands) {
    add(app, status);
  }
  try {
    app.parse(shp::marked_arguments(app, argc, argv));
  } catch (const CLI::ParseError& problem) {
    return problem.get_exit_code() == 0 ? app.exit(problem)
                                        : usage_error(app, problem);
  }
  return status;
}
