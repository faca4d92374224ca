#include "cli/trace/combine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "cli/trace/output_file.h"
#include "cli/trace/rebase_event.h"
#include "cli/trace/trace_document.h"
#include "common/jsonl/json_check.h"

namespace shp {
namespace {

// A trace that can stand on the common timeline.
bool has_place(const TraceJob& job) {
  return job.decided.verdict == Verdict::kTrace &&
         job.decided.kind[0] != '\0' &&
         (job.decided.base_known || is_open(job));
}

// Pids of the combined trace: each process's own where it is free, since that
// is what people look for; hosts choose before devices, whose numbers all ranks
// share.
class Pids {
 public:
  int64_t choose(std::optional<int64_t> wanted) {
    int64_t pid = wanted.value_or(0);
    while (pid <= 0 || pid >= kLimit || taken_.count(pid) != 0) {
      pid = next_++;
    }
    taken_.insert(pid);
    return pid;
  }

 private:
  static constexpr int64_t kLimit = int64_t{1} << 32;
  int64_t next_ = kRowBase;
  std::set<int64_t> taken_;
};

// One trace's processes by their old tokens.
using PidMapping = std::map<std::string, std::string, std::less<>>;

std::string name_of(const TraceJob& job) {
  return job.report.rank ? "rank " + std::to_string(*job.report.rank)
                         : job.report.name;
}

std::string process_words(const TraceProcess& process, bool host) {
  if (host) {
    return (process.name.empty() ? "host" : process.name) + " (" +
           std::to_string(process.pid.value_or(0)) + ")";
  }
  const std::string& words =
      process.label.empty() ? process.name : process.label;
  return words.empty() ? "pid " + process.pid_token : words;
}

class Combiner {
 public:
  Combiner(std::vector<TraceJob>& jobs, TextSink& sink, std::string spill)
      : jobs_(jobs), sink_(sink), spill_(std::move(spill)) {}

  Status run(const std::vector<HostSummary>& hosts);

 private:
  void number_all();
  void choose_base(const std::vector<HostSummary>& hosts);
  Status name_processes();
  Status name_process(std::string_view pid, const std::string& name);
  Status copy_trace(size_t index);
  Status put_event(const EventFields& fields,
                   std::string_view text,
                   size_t index);
  Status put_spans(size_t index);
  Status put_lone_host(const HostSummary& host);

  std::vector<TraceJob>& jobs_;
  TextSink& sink_;
  std::string spill_;
  TimeStyle style_;
  Pids pids_;
  std::vector<PidMapping> mappings_;
  std::vector<uint32_t> numbers_;  // of the traces that go in, for their ids
  int64_t next_sort_index_ = 0;
  bool need_comma_ = false;
  uint64_t next_async_id_ = 1;
  // Several traces of one process may have its host files: once is enough here.
  std::set<std::string> placed_;
};

bool is_host_row(const TraceJob& job, size_t process) {
  const std::vector<size_t>& hosts = job.decided.hosts;
  return std::find(hosts.begin(), hosts.end(), process) != hosts.end();
}

void Combiner::number_all() {
  mappings_.resize(jobs_.size());
  uint32_t next = 0;
  for (const TraceJob& job : jobs_) {
    numbers_.push_back(has_place(job) ? next++ : 0);
  }
  for (const bool hosts : {true, false}) {
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const auto& processes = jobs_[i].scanned.scan.processes;
      for (size_t p = 0; has_place(jobs_[i]) && p < processes.size(); ++p) {
        if (is_host_row(jobs_[i], p) == hosts) {
          mappings_[i][processes[p].pid_token] =
              std::to_string(pids_.choose(processes[p].pid));
        }
      }
    }
  }
}

void Combiner::choose_base(const std::vector<HostSummary>& hosts) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const TraceJob& job : jobs_) {
    if (has_place(job)) {
      first = std::min(first, job.decided.window.begin);
    }
  }
  for (const HostSummary& host : hosts) {
    first = std::min(first, host.metadata.start_realtime_ns);
  }
  style_.base_ns = kineto_base(first);
}

Status Combiner::name_process(std::string_view pid, const std::string& name) {
  SpanEmitter emitter(sink_, style_, spill_, need_comma_);
  need_comma_ = true;
  const Status named =
      emitter.emit_metadata(pid, 0, "process_name", "name", json_quote(name));
  return named ? emitter.emit_metadata(pid,
                                       0,
                                       "process_sort_index",
                                       "sort_index",
                                       std::to_string(next_sort_index_++))
               : named;
}

Status Combiner::name_processes() {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const auto& processes = jobs_[i].scanned.scan.processes;
    for (const bool hosts : {true, false}) {
      for (size_t p = 0; has_place(jobs_[i]) && p < processes.size(); ++p) {
        if (is_host_row(jobs_[i], p) != hosts || processes[p].events == 0) {
          continue;
        }
        const Status named = name_process(
            mappings_[i][processes[p].pid_token],
            name_of(jobs_[i]) + ": " + process_words(processes[p], hosts));
        if (!named) {
          return named;
        }
      }
    }
  }
  return {};
}

// Names and order of processes were written before: viewers keep the first.
Status Combiner::put_event(const EventFields& fields,
                           std::string_view text,
                           size_t index) {
  const bool named =
      fields.ph == "\"M\"" && (fields.name == "\"process_name\"" ||
                               fields.name == "\"process_sort_index\"");
  if (named) {
    return {};
  }
  const auto pid = mappings_[index].find(fields.pid);
  const EventRebase rebase{
      jobs_[index].decided.style.base_ns, style_.base_ns, numbers_[index]};
  const std::string event = rebase_event(text,
                                         fields,
                                         pid == mappings_[index].end()
                                             ? fields.pid
                                             : std::string_view(pid->second),
                                         rebase);
  const Status put = sink_.write(need_comma_ ? ",\n" : "");
  need_comma_ = true;
  return put ? sink_.write(event) : put;
}

Status Combiner::copy_trace(size_t index) {
  const TraceJob& job = jobs_[index];
  const Result<UniqueFd> fd = open_for_reading(job.path);
  if (!fd) {
    return tl::unexpected<Error>(fd.error());
  }
  PlainSource plain(fd->get());
  GzSource gz(fd->get());
  ByteSource& source = job.scanned.gz ? static_cast<ByteSource&>(gz) : plain;
  Status state;
  const Result<TraceScan> scanned =
      scan_trace(source, [&](const EventFields& fields, std::string_view text) {
        state = state ? put_event(fields, text, index) : state;
      });
  if (!scanned) {
    return context(job.path, scanned.error());
  }
  return state;
}

Status Combiner::put_spans(size_t index) {
  TraceJob& job = jobs_[index];
  SpanEmitter emitter(sink_, style_, spill_, need_comma_);
  emitter.start_async_ids_at(next_async_id_);
  const Status put =
      for_planned(job, [&](const PlannedHost& planned, EmitProcess& rows) {
        if (!placed_.insert(planned.host->path).second) {
          return Status{};
        }
        rows.pid_token = mappings_[index][planned.process->pid_token];
        // Beside the traces' own windows there is room here for all spans.
        return emitter.emit_file(
            planned.host->path, rows, {&planned.relation, nullptr});
      });
  if (!put) {
    return put;
  }
  next_async_id_ += emitter.counts().async;
  job.report.spans = emitter.counts().spans;
  job.report.async = emitter.counts().async;
  job.report.marks = emitter.counts().marks;
  job.report.unfinished = emitter.counts().unfinished;
  job.report.outcome = TraceOutcome::kMerged;
  return {};
}

// A process that no trace is of: tokenizer, router.
Status Combiner::put_lone_host(const HostSummary& host) {
  const std::string pid = std::to_string(pids_.choose(host.metadata.pid));
  const Status named = name_process(pid, process_label(host.metadata));
  if (!named) {
    return named;
  }
  EmitProcess target(TidChooser::kAnyPid);
  target.pid_token = pid;
  SpanEmitter emitter(sink_, style_, spill_, true);
  emitter.start_async_ids_at(next_async_id_);
  const Status put = emitter.emit_file(host.path, target, {});
  next_async_id_ += emitter.counts().async;
  return put;
}

Status Combiner::run(const std::vector<HostSummary>& hosts) {
  choose_base(hosts);
  number_all();
  Status state = sink_.write(trace_header(style_.base_ns));
  state = state ? name_processes() : state;
  for (size_t i = 0; state && i < jobs_.size(); ++i) {
    if (has_place(jobs_[i])) {
      state = copy_trace(i);
    }
    if (state && is_open(jobs_[i])) {
      state = put_spans(i);
    }
  }
  for (const HostSummary& host : hosts) {
    if (state && placed_.count(host.path) == 0) {
      state = put_lone_host(host);
    }
  }
  state = state ? sink_.write(kTraceFooter) : state;
  return state ? sink_.finish() : state;
}

}  // namespace

Status combine_traces(std::vector<TraceJob>& jobs,
                      const std::vector<HostSummary>& hosts,
                      const std::string& output) {
  Result<OutputFile> file = OutputFile::create(output);
  if (!file) {
    return tl::unexpected<Error>(file.error());
  }
  const std::unique_ptr<TextSink> sink = make_sink(file->fd(), output);
  Combiner combiner(jobs, *sink, directory_of(output));
  const Status combined = combiner.run(hosts);
  return combined ? file->commit() : combined;
}

}  // namespace shp
