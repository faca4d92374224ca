#include "cli/run/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "cli/terminal_text.h"

namespace shp {
namespace {

constexpr size_t kProcessesShown = 8;
constexpr size_t kProgramShown = 48;
constexpr size_t kPidsShown = 5;
constexpr const char* kHint = "https://ui.perfetto.dev";

std::string counted(uint64_t number, const char* one) {
  return with_commas(number) + " " + one + (number == 1 ? "" : "s");
}

uint64_t sum(const std::vector<HostFile>& files, int64_t HostMetadata::*field) {
  uint64_t total = 0;
  for (const HostFile& file : files) {
    total += static_cast<uint64_t>(file.metadata.*field);
  }
  return total;
}

void add_processes(const std::vector<HostFile>& files, std::string& out) {
  std::vector<const HostMetadata*> order;
  for (const HostFile& file : files) {
    order.push_back(&file.metadata);
  }
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return a->written_spans > b->written_spans;
  });
  const size_t shown = std::min(order.size(), kProcessesShown);
  for (size_t i = 0; i < shown; ++i) {
    const HostMetadata& process = *order[i];
    out +=
        fmt::format("  {:>12} spans  pid {:<7} {}{}\n",
                    with_commas(static_cast<uint64_t>(process.written_spans)),
                    process.pid,
                    command_line(process.argv),
                    process.complete ? "" : "  (" + process.end_reason + ")");
  }
  if (order.size() > shown) {
    out += fmt::format("  {:>12} more\n", order.size() - shown);
  }
}

std::string pid_list(const std::vector<int64_t>& pids) {
  std::string list;
  const size_t shown = std::min(pids.size(), kPidsShown);
  for (size_t i = 0; i < shown; ++i) {
    list += i > 0 ? ", " : "";
    list += std::to_string(pids[i]);
  }
  return shown < pids.size() ? list + ", ..." : list;
}

void add_unfinished(const RunOutcome& outcome, std::string& out) {
  const auto& pids = outcome.still_recording;
  if (!pids.empty()) {
    out += fmt::format(
        "shp run: still running and recording: pid {}; what they record "
        "appears in {} when they end\n",
        pid_list(pids),
        outcome.directory);
  }
  if (outcome.unpublished > 0) {
    out +=
        fmt::format("shp run: {} not published yet (*.jsonl.pending in {})\n",
                    counted(outcome.unpublished, "file"),
                    outcome.directory);
  }
}

// The path of the one host file, else a pattern that names them all.
std::string export_arguments(const RunOutcome& outcome) {
  if (outcome.files.size() == 1) {
    return shell_word(outcome.files.front().path);
  }
  return shell_word(outcome.directory) + "/*.jsonl";
}

void add_next(const RunOutcome& outcome, std::string& out) {
  const std::string directory = shell_word(outcome.directory);
  const bool traced = !outcome.traces.empty();
  const std::string merge = fmt::format("shp merge-dir {} --torch-dir {}",
                                        directory,
                                        traced ? directory : "TORCH_DIR");
  const std::string alone = fmt::format(
      "shp export {} -o {}/host.json.gz", export_arguments(outcome), directory);
  out += fmt::format("next: {}\n", traced ? merge : alone);
  out += fmt::format("      then open {} at {}\n",
                     traced ? "the trace" : "host.json.gz",
                     kHint);
  if (!traced) {
    out += fmt::format("  or: {}   beside a Torch trace's kernels\n", merge);
  }
}

}  // namespace

std::string losses(const std::vector<HostFile>& files) {
  const uint64_t dropped = sum(files, &HostMetadata::dropped_spans);
  if (dropped == 0) {
    return "nothing lost";
  }
  std::map<std::string, uint64_t> causes;
  for (const HostFile& file : files) {
    for (const auto& [cause, number] : file.metadata.dropped) {
      causes[cause] += static_cast<uint64_t>(number);
    }
  }
  std::string text = counted(dropped, "span") + " lost";
  std::string separator = ": ";
  for (const auto& [cause, number] : causes) {
    text += separator + with_commas(number) + " " + cause;
    separator = ", ";
  }
  return text;
}

std::string command_line(const std::vector<std::string>& argv) {
  std::string line;
  for (size_t i = 0; i < argv.size() && line.size() < kProgramShown; ++i) {
    line += i > 0 ? " " : "";
    line += i > 0 ? argv[i] : argv[i].substr(argv[i].rfind('/') + 1);
  }
  return for_terminal(line, kProgramShown);
}

std::string with_commas(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, 1, ',');
  }
  return digits;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) {
    return text;
  }
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

std::string report(const RunOutcome& outcome) {
  std::string out;
  for (const std::string& problem : outcome.problems) {
    out += "shp run: " + problem + "\n";
  }
  if (outcome.files.empty()) {
    if (outcome.still_recording.empty() && outcome.unpublished == 0) {
      out += "shp run: nothing was recorded: " +
             (outcome.why_nothing.empty()
                  ? "no process started a span (does the program use "
                    "service_host_profiling or shp.h?)"
                  : outcome.why_nothing) +
             "\n";
    }
    add_unfinished(outcome, out);
    return out;
  }
  out += fmt::format(
      "shp run: recorded {} in {} in {}: {}\n",
      counted(sum(outcome.files, &HostMetadata::written_spans), "span"),
      counted(outcome.files.size(), "file"),
      outcome.directory,
      losses(outcome.files));
  add_processes(outcome.files, out);
  if (const uint64_t bad = sum(outcome.files, &HostMetadata::bad_args);
      bad > 0) {
    out += fmt::format("shp run: {} kept without attributes, which were bad\n",
                       counted(bad, "span"));
  }
  add_unfinished(outcome, out);
  add_next(outcome, out);
  return out;
}

}  // namespace shp
