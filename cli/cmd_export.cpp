#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/terminal_text.h"
#include "cli/trace/export.h"

namespace shp {
namespace {

struct ExportOptions {
  std::vector<std::string> inputs;
  std::string output;
};

int run_export(const ExportOptions& options) {
  const Result<ExportReport> report =
      export_trace(options.inputs, options.output);
  if (!report) {
    say_error("export", report.error().message);
    return 1;
  }
  for (const std::string& warning : report->warnings) {
    say_error("export", "warning: " + warning);
  }
  const std::string marks = report->marks == 0
                                ? std::string()
                                : " and " + std::to_string(report->marks) +
                                      (report->marks == 1 ? " mark" : " marks");
  std::fprintf(options.output == "-" ? stderr : stdout,
               "%s: %llu span%s%s from %llu host file%s\n",
               options.output.c_str(),
               static_cast<unsigned long long>(report->spans),
               report->spans == 1 ? "" : "s",
               marks.c_str(),
               static_cast<unsigned long long>(report->files),
               report->files == 1 ? "" : "s");
  return 0;
}

}  // namespace

void add_export(CLI::App& app, int& status) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* verb = app.add_subcommand(
      "export", "Write closed host files as one Chrome trace");
  verb->add_option(
          "FILE", options->inputs, "Host files, or directories of them")
      ->required();
  verb->add_option("-o,--output",
                   options->output,
                   "OUT.json, OUT.json.gz, or - for standard output")
      ->required();
  verb->footer(
      "Example:\n  shp export out/ -o trace.json.gz\n"
      "then open trace.json.gz in https://ui.perfetto.dev");
  verb->callback([options, &status] { status = run_export(*options); });
}

}  // namespace shp
