#include "cli/trace/merge_trace.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "cli/trace/output_file.h"
#include "cli/trace/prefix_copy.h"
#include "cli/trace/splice.h"

namespace shp {
namespace {

Status write_spans(TraceJob& job, TextSink& sink, const std::string& spill) {
  SpanEmitter emitter(
      sink, job.decided.style, spill, job.scanned.scan.has_events);
  const Status emitted =
      for_planned(job, [&](const PlannedHost& planned, EmitProcess& rows) {
        return emitter.emit_file(
            planned.host->path, rows, {&planned.relation, &job.decided.window});
      });
  if (!emitted) {
    return emitted;
  }
  job.report.spans = emitter.counts().spans;
  job.report.async = emitter.counts().async;
  job.report.marks = emitter.counts().marks;
  job.report.unfinished = emitter.counts().unfinished;
  return {};
}

// A sink for --dry-run: spans are counted and placed, and go nowhere.
class NoSink : public TextSink {
 public:
  Status write(std::string_view) override { return {}; }
  Status finish() override { return {}; }
};

Result<std::string> output_path(const TraceJob& job,
                                const MergeOptions& options) {
  if (options.output_dir.empty()) {
    return job.path;
  }
  const std::string path = options.output_dir + "/" + job.report.name;
  std::error_code problem;
  std::filesystem::create_directories(directory_of(path), problem);
  if (problem) {
    return error(directory_of(path) + ": " + problem.message());
  }
  return path;
}

void note_facts(TraceJob& job) {
  TraceReport& report = job.report;
  report.kind = job.decided.kind;
  report.base_ns = job.scanned.scan.base_ns;
  report.rank = job.scanned.scan.rank;
  report.window = job.decided.window;
  report.replaced_events = job.scanned.scan.own_events;
  for (const size_t index : job.decided.hosts) {
    report.host_pids.push_back(*job.scanned.scan.processes[index].pid);
  }
  if (job.decided.ascend) {
    job.ascend = read_ascend_capture(job.path);
    report.rank = job.ascend.rank;
  }
}

// Where the new trace goes. It is made when it is first needed, which for a
// large plain trace is while the old one is still being scanned.
class Output {
 public:
  Output(const TraceJob& job, const MergeOptions& options)
      : job_(job), options_(options) {}

  Result<OutputFile*> file() {
    if (file_) {
      return &*file_;
    }
    const Result<std::string> path = output_path(job_, options_);
    if (!path) {
      return tl::unexpected<Error>(path.error());
    }
    Result<OutputFile> made = OutputFile::create(*path);
    if (!made) {
      return tl::unexpected<Error>(made.error());
    }
    file_.emplace(std::move(*made));
    return &*file_;
  }

  Result<int> fd() {
    const Result<OutputFile*> made = file();
    return made ? Result<int>((*made)->fd())
                : Result<int>(tl::unexpected<Error>(made.error()));
  }

 private:
  const TraceJob& job_;
  const MergeOptions& options_;
  std::optional<OutputFile> file_;
};

// Scans the open file; what is no trace gets its outcome and reason.
void scan_open(TraceJob& job, int fd, PrefixCopy* copy) {
  Result<ScannedTrace> scanned = scan_file(fd, copy);
  if (!scanned) {
    end_job(job, TraceOutcome::kFailed, scanned.error().message);
    return;
  }
  job.scanned = std::move(*scanned);
  job.decided = classify(job.scanned.scan);
  note_facts(job);
  if (job.decided.verdict != Verdict::kTrace) {
    const bool skip = job.decided.verdict == Verdict::kSkip;
    end_job(job,
            skip ? TraceOutcome::kSkipped : TraceOutcome::kFailed,
            job.decided.reason);
  }
}

Status write_trace(TraceJob& job, int in, PrefixCopy& copy, Output& output) {
  const Result<OutputFile*> out = output.file();
  if (!out) {
    return tl::unexpected<Error>(out.error());
  }
  const std::string spill = directory_of((*out)->path());
  const Result<uint64_t> copied = copy.finish(unchanged_bytes(job.scanned));
  if (!copied) {
    return context(job.path, copied.error());
  }
  Status state =
      splice(in, job.scanned, {(*out)->fd(), *copied}, [&](TextSink& sink) {
        return write_spans(job, sink, spill);
      });
  state = state ? (*out)->copy_mode(in) : state;
  struct stat after;
  if (state && (fstat(in, &after) != 0 ||
                !(FileIdentity::of(after) == job.scanned.identity))) {
    state = error("changed while it was read");
  }
  if (!state) {
    return context(job.path, state.error());
  }
  job.report.output = (*out)->path();
  return (*out)->commit();
}

void fail_to_open(TraceJob& job, const Error& problem) {
  end_job(job, TraceOutcome::kFailed, std::strerror(problem.errno_value));
}

}  // namespace

bool is_open(const TraceJob& job) {
  return job.report.reason.empty();
}

void end_job(TraceJob& job, TraceOutcome outcome, std::string reason) {
  job.report.outcome = outcome;
  job.report.reason = std::move(reason);
}

void look_at_job(TraceJob& job,
                 const std::vector<HostSummary>& hosts,
                 const MergeOptions& options) {
  const Result<UniqueFd> fd = open_for_reading(job.path);
  if (!fd) {
    fail_to_open(job, fd.error());
    return;
  }
  scan_open(job, fd->get(), nullptr);
  if (is_open(job)) {
    plan_job(job, hosts, options);
  }
}

void merge_job(TraceJob& job,
               const std::vector<HostSummary>& hosts,
               const MergeOptions& options) {
  const bool in_place = options.output_dir.empty() && !options.dry_run;
  const Result<UniqueFd> in =
      in_place ? open_locked(job.path) : open_for_reading(job.path);
  if (!in) {
    fail_to_open(job, in.error());
    return;
  }
  Output output(job, options);
  PrefixCopy copy(in->get(), [&output] { return output.fd(); });
  scan_open(job, in->get(), options.dry_run ? nullptr : &copy);
  if (is_open(job)) {
    plan_job(job, hosts, options);
  }
  if (!is_open(job)) {
    return;
  }
  NoSink nowhere;
  const Status state = options.dry_run
                           ? write_spans(job, nowhere, "/tmp")
                           : write_trace(job, in->get(), copy, output);
  if (!state) {
    end_job(job, TraceOutcome::kFailed, state.error().message);
    return;
  }
  job.report.outcome = TraceOutcome::kMerged;
}

}  // namespace shp
