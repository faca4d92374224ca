#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/terminal_text.h"
#include "cli/trace/merge_report.h"

namespace shp {
namespace {

struct MergeArguments {
  MergeOptions options;
  std::optional<std::string> pid_map;
  std::optional<std::string> clock_offset;
  std::optional<std::string> clock_anchors;
  bool json = false;
};

int fail(const std::string& message) {
  say_error("merge-dir", message);
  return 1;
}

// The predecessor takes JSON's null for "not given".
bool is_given(const std::optional<std::string>& text) {
  return text && *text != "null";
}

// The texts of the three JSON options, when they were given.
Status parse_texts(MergeArguments& arguments) {
  if (is_given(arguments.pid_map) && !arguments.pid_map->empty()) {
    Result<PidMap> map = parse_pid_map(*arguments.pid_map);
    if (!map) {
      return tl::unexpected<Error>(map.error());
    }
    arguments.options.pid_map = std::move(*map);
  }
  const bool offset = is_given(arguments.clock_offset);
  if (offset || is_given(arguments.clock_anchors)) {
    Result<GivenClocks> clocks =
        offset ? parse_clock_offset(*arguments.clock_offset)
               : parse_clock_anchors(*arguments.clock_anchors);
    if (!clocks) {
      return tl::unexpected<Error>(clocks.error());
    }
    arguments.options.clocks = std::move(*clocks);
  }
  return {};
}

void show_progress(size_t done, size_t all) {
  std::fprintf(stderr, "\rmerging: %zu of %zu traces", done, all);
  if (done == all) {
    std::fprintf(stderr, "\r\033[K");
  }
}

int run_merge(MergeArguments& arguments) {
  if (arguments.options.torch_dir.empty()) {
    arguments.options.torch_dir = arguments.options.host_dir;
  }
  const Status parsed = parse_texts(arguments);
  if (!parsed) {
    return fail(parsed.error().message);
  }
  const bool on_terminal = isatty(STDERR_FILENO) != 0;
  const Result<MergeReport> report =
      merge_dir(arguments.options, on_terminal ? show_progress : nullptr);
  if (!report) {
    return fail(report.error().message);
  }
  const bool dry_run = arguments.options.dry_run;
  const std::string text = arguments.json ? report_json(*report, dry_run)
                                          : report_lines(*report, dry_run);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!arguments.options.combine.empty() && !arguments.json) {
    std::printf("%s: all of them on one timeline\n",
                arguments.options.combine.c_str());
  }
  for (const std::string& line : report_problems(*report)) {
    fail(line);
  }
  return report->ok() ? 0 : 1;
}

}  // namespace

void add_merge_dir(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<MergeArguments>();
  MergeOptions& options = arguments->options;
  CLI::App* verb = app.add_subcommand(
      "merge-dir", "Put host spans into the Torch traces of a directory");
  verb->add_option(
          "HOST_DIR", options.host_dir, "Directory of closed host files")
      ->required();
  verb->add_option("--torch-dir",
                   options.torch_dir,
                   "Whole Torch capture directory, above all ranks' traces; "
                   "HOST_DIR where it is not given");
  CLI::Option* output_dir =
      verb->add_option("--output-dir",
                       options.output_dir,
                       "Write there and leave the originals alone");
  CLI::Option* combine = verb->add_option(
      "--combine",
      options.combine,
      "Write all ranks and host processes into this one trace instead");
  combine->excludes(output_dir);
  verb->add_option(
      "--pid-map",
      arguments->pid_map,
      "JSON object of Host OS PID (or \"HOST:PID\") to Torch Host PID");
  CLI::Option* offset = verb->add_option(
      "--clock-offset-ns",
      arguments->clock_offset,
      "trace ns minus host ns: an integer, or {\"host_pid\": integer}");
  verb->add_option("--clock-anchors-ns",
                   arguments->clock_anchors,
                   "[[host0,target0],[host1,target1]], or an object of them")
      ->excludes(offset);
  verb->add_flag("--dry-run", options.dry_run, "Only say what would be done")
      ->excludes(combine);
  verb->add_flag("--json", arguments->json, "Report as one JSON object");
  verb->footer(
      "Example:\n  shp merge-dir out/ --torch-dir log/\n"
      "  shp merge-dir log/    # host files in log/HOST_TRACE");
  verb->callback([arguments, &status] { status = run_merge(*arguments); });
}

}  // namespace shp
