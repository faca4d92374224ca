#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/run/report.h"
#include "cli/stats/counter_stats.h"
#include "cli/stats/stats_text.h"
#include "cli/stats/table_options.h"
#include "cli/terminal_text.h"
#include "cli/trace/find_files.h"
#include "cli/trace/host_reader.h"
#include "common/jsonl/json_check.h"

namespace shp {
namespace {

struct StatsOptions {
  std::vector<std::string> inputs;
  std::string sort = "total";
  size_t most_rows = 50;
  bool by_file = false;
  bool json = false;
};

// What one table is of: all files, or one of them.
struct Group {
  std::vector<HostFile> files;
  SpanStats spans;
  CounterStats marks;
  int64_t first_ns = std::numeric_limits<int64_t>::max();  // realtime
  int64_t last_ns = std::numeric_limits<int64_t>::min();

  double seconds() const {
    return static_cast<double>(last_ns - first_ns) / 1e9;
  }
};

Status read_marks(const std::string& path, Group& group) {
  Result<std::unique_ptr<HostReader>> reader = open_mark_reader(path);
  Result<bool> got = false;
  HostSpan mark;
  while (reader && (got = (*reader)->next(mark)) && *got) {
    group.marks.take(mark);
  }
  return !reader ? Status(tl::unexpected<Error>(reader.error()))
         : !got  ? Status(tl::unexpected<Error>(got.error()))
                 : Status();
}

Status read_file(const std::string& path, Group& group) {
  Result<std::unique_ptr<HostReader>> reader = open_host_reader(path);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  const HostMetadata& metadata = (*reader)->metadata();
  const uint64_t process = group.files.size();
  group.spans.set_window(
      process,
      metadata.start_monotonic_ns,
      metadata.stop_monotonic_ns - metadata.start_monotonic_ns);
  group.first_ns = std::min(group.first_ns, metadata.start_realtime_ns);
  group.last_ns = std::max(group.last_ns, metadata.stop_realtime_ns);
  group.files.push_back({path, metadata});
  HostSpan span;
  Result<bool> got = false;
  while ((got = (*reader)->next(span)) && *got) {
    group.spans.take(process, span);
  }
  if (!got) {
    return tl::unexpected<Error>(got.error());
  }
  return metadata.has_marks() ? read_marks(path, group) : Status();
}

std::vector<NameRow> sorted_rows(const Group& group,
                                 const StatsOptions& options) {
  std::vector<NameRow> rows = group.spans.rows();
  sort_rows(rows, options.sort);
  return rows;
}

std::string heading(const Group& group) {
  if (group.files.size() > 1) {
    return fmt::format("{} host files", group.files.size());
  }
  const HostFile& file = group.files.front();
  return fmt::format("{}: pid {} {}",
                     file.path,
                     file.metadata.pid,
                     command_line(file.metadata.argv));
}

void print_group(const Group& group, const StatsOptions& options) {
  fmt::print("{}, {}, {} span{}, {}\n",
             heading(group),
             short_duration(group.last_ns - group.first_ns),
             with_commas(group.spans.spans()),
             group.spans.spans() == 1 ? "" : "s",
             losses(group.files));
  fmt::print("{}",
             stats_table(sorted_rows(group, options),
                         {group.seconds(), options.most_rows, 0}));
  const auto marks = group.marks.rows();
  if (!marks.empty()) {
    fmt::print("\n{}", counter_table(marks, group.seconds()));
  }
}

std::string file_json(const HostFile& file) {
  return fmt::format(
      R"({{"path":{},"pid":{},"spans":{},"dropped":{},"complete":{}}})",
      json_quote(file.path),
      file.metadata.pid,
      file.metadata.written_spans,
      file.metadata.dropped_spans,
      file.metadata.complete);
}

std::string group_json(const Group& group, const StatsOptions& options) {
  std::string files;
  for (const HostFile& file : group.files) {
    files += (files.empty() ? "" : ",") + file_json(file);
  }
  return fmt::format(
      R"({{"seconds":{:.9g},"files":[{}],"names":{},"marks":{}}})",
      group.seconds(),
      files,
      stats_json(sorted_rows(group, options), group.seconds()),
      counter_json(group.marks.rows()));
}

void print_groups(const std::vector<std::unique_ptr<Group>>& groups,
                  const StatsOptions& options) {
  if (!options.json) {
    for (const auto& group : groups) {
      fmt::print("{}", group == groups.front() ? "" : "\n");
      print_group(*group, options);
    }
    return;
  }
  std::string text;
  for (const auto& group : groups) {
    text += (text.empty() ? "" : ",") + group_json(*group, options);
  }
  fmt::print("{}\n", options.by_file ? "[" + text + "]" : text);
}

int run_stats(const StatsOptions& options) {
  const auto paths = list_host_files(options.inputs);
  if (!paths) {
    say_error("stats", paths.error().message);
    return 1;
  }
  std::vector<std::unique_ptr<Group>> groups;
  for (const std::string& path : *paths) {
    if (groups.empty() || options.by_file) {
      groups.push_back(std::make_unique<Group>());
    }
    const Status state = read_file(path, *groups.back());
    if (!state) {
      say_error("stats", state.error().message);
      return 1;
    }
  }
  print_groups(groups, options);
  return 0;
}

}  // namespace

void add_stats(CLI::App& app, int& status) {
  const auto options = std::make_shared<StatsOptions>();
  CLI::App* verb = app.add_subcommand(
      "stats", "Sum up closed host files: spans by name, times, losses");
  verb->add_option(
          "FILE", options->inputs, "Host files, or directories of them")
      ->required();
  add_sort_option(*verb, options->sort);
  verb->add_option(
          "-n,--rows", options->most_rows, "Names to show, 0 for all of them")
      ->capture_default_str();
  verb->add_flag("--by-file", options->by_file, "A table for each file");
  verb->add_flag("--json",
                 options->json,
                 "One JSON object (an array of them "
                 "with --by-file), times in ns");
  verb->footer(std::string("Example:\n  shp stats out/ --sort p99\n\n") +
               kColumnsHelp);
  verb->callback([options, &status] { status = run_stats(*options); });
}

}  // namespace shp
