#include "cli/parse.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "cli/run/command_mark.h"

namespace shp {
namespace {

int usage_error(const CLI::App& app, const CLI::ParseError& problem) {
  const auto verbs = app.get_subcommands();
  std::cerr << "shp" << (verbs.empty() ? "" : " " + verbs.front()->get_name())
            << ": " << problem.what() << "\n";
  return 2;
}

}  // namespace

int parse_and_run(CLI::App& app, int argc, char** argv, const int& status) {
  try {
    app.parse(marked_arguments(app, argc, argv));
  } catch (const CLI::ParseError& problem) {
    return problem.get_exit_code() == 0 ? app.exit(problem)
                                        : usage_error(app, problem);
  }
  return status;
}

}  // namespace shp
