#include "cli/trace/export.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "cli/trace/background_sink.h"
#include "cli/trace/emit_spans.h"
#include "cli/trace/find_files.h"
#include "cli/trace/output_file.h"
#include "cli/trace/trace_document.h"
#include "common/jsonl/json_check.h"

namespace shp {
namespace {

// One process of the export and its host files.
struct Process {
  HostMetadata metadata;  // of its first file
  int64_t pid = 0;        // in the trace
  std::vector<std::string> paths;
};

// Who a process is, wherever it ran.
auto identity(const HostMetadata& metadata) {
  return std::make_tuple(metadata.hostname,
                         metadata.boot_id,
                         metadata.pid_namespace.value_or(0),
                         metadata.pid);
}

// Processes of several hosts or containers may share a pid; a trace keeps rows
// apart by it, so all but the first get another one.
void number_processes(std::vector<Process>& processes) {
  std::set<int64_t> taken;
  for (Process& process : processes) {
    int64_t pid = process.metadata.pid;
    const bool usable = pid < kRowBase && taken.insert(pid).second;
    if (!usable) {
      pid = kRowBase + pid % kRowBase;
      while (!taken.insert(pid).second) {
        ++pid;
      }
    }
    process.pid = pid;
  }
}

Result<std::vector<Process>> gather(const std::vector<std::string>& paths,
                                    std::vector<std::string>& warnings) {
  std::vector<Process> processes;
  for (const std::string& path : paths) {
    Result<std::unique_ptr<HostReader>> reader = open_host_reader(path);
    if (!reader) {
      return tl::unexpected<Error>(reader.error());
    }
    const HostMetadata& metadata = (*reader)->metadata();
    if (!metadata.complete) {
      warnings.push_back(path + ": is not complete" +
                         (metadata.end_reason.empty()
                              ? std::string()
                              : " (" + metadata.end_reason + ")"));
    }
    const auto same = std::find_if(
        processes.begin(), processes.end(), [&](const Process& process) {
          return identity(process.metadata) == identity(metadata);
        });
    if (same != processes.end()) {
      same->paths.push_back(path);
    } else {
      processes.push_back({metadata, 0, {path}});
    }
  }
  number_processes(processes);
  return processes;
}

int64_t common_base(const std::vector<Process>& processes) {
  int64_t first = processes.front().metadata.start_realtime_ns;
  for (const Process& process : processes) {
    first = std::min(first, process.metadata.start_realtime_ns);
  }
  return kineto_base(first);
}

Status emit_process(SpanEmitter& emitter, const Process& process) {
  EmitProcess target(TidChooser::kAnyPid);
  target.pid_token = std::to_string(process.pid);
  Status state =
      emitter.emit_metadata(target.pid_token,
                            0,
                            "process_name",
                            "name",
                            json_quote(process_label(process.metadata)));
  if (state) {
    state = emitter.emit_metadata(target.pid_token,
                                  0,
                                  "process_labels",
                                  "labels",
                                  json_quote(process.metadata.hostname));
  }
  for (const std::string& path : process.paths) {
    state = state ? emitter.emit_file(path, target, {}) : state;
  }
  return state;
}

Status write_trace(TextSink& behind,
                   const std::vector<Process>& processes,
                   const std::string& spill_directory,
                   ExportReport& report) {
  BackgroundSink sink(behind);
  TimeStyle style;
  style.base_ns = common_base(processes);
  Status state = sink.write(trace_header(style.base_ns));
  SpanEmitter emitter(sink, style, spill_directory, false);
  for (const Process& process : processes) {
    state = state ? emit_process(emitter, process) : state;
  }
  state = state ? sink.write(kTraceFooter) : state;
  report.spans = emitter.counts().spans;
  report.async = emitter.counts().async;
  report.marks = emitter.counts().marks;
  report.warnings.insert(report.warnings.end(),
                         emitter.counts().warnings.begin(),
                         emitter.counts().warnings.end());
  state = state ? sink.finish() : state;
  return state ? behind.finish() : state;
}

Status write_file(const std::string& output,
                  const std::vector<Process>& processes,
                  ExportReport& report) {
  Result<OutputFile> file = OutputFile::create(output);
  if (!file) {
    return tl::unexpected<Error>(file.error());
  }
  const std::unique_ptr<TextSink> sink = make_sink(file->fd(), output);
  const Status written =
      write_trace(*sink, processes, directory_of(output), report);
  return written ? file->commit() : written;
}

}  // namespace

Result<ExportReport> export_trace(const std::vector<std::string>& inputs,
                                  const std::string& output) {
  const Result<std::vector<std::string>> paths = list_host_files(inputs);
  if (!paths) {
    return tl::unexpected<Error>(paths.error());
  }
  ExportReport report;
  report.files = paths->size();
  const Result<std::vector<Process>> processes =
      gather(*paths, report.warnings);
  if (!processes) {
    return tl::unexpected<Error>(processes.error());
  }
  Status state;
  if (output == "-") {
    FdSink sink(STDOUT_FILENO);
    state = write_trace(sink, *processes, "/tmp", report);
  } else {
    state = write_file(output, *processes, report);
  }
  if (!state) {
    return tl::unexpected<Error>(state.error());
  }
  return report;
}

}  // namespace shp
