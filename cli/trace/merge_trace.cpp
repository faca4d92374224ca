#include "cli/trace/merge_trace.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "cli/trace/emit_spans.h"
#include "cli/trace/match.h"
#include "cli/trace/output_file.h"
#include "cli/trace/splice.h"

namespace shp {
namespace {

void end_job(TraceJob& job, TraceOutcome outcome, std::string reason) {
  job.report.outcome = outcome;
  job.report.reason = std::move(reason);
}

int64_t os_pid(const HostFile& host, const PidMap& map) {
  const int64_t pid = host.metadata.pid;
  const int64_t outer = host.metadata.host_pid.value_or(pid);
  return map.count(outer) != 0 ? outer : pid;
}

HostFacts facts_of(const HostFile& host,
                   const ClockRelation& relation,
                   const PidMap& map) {
  const HostMetadata& metadata = host.metadata;
  HostFacts facts;
  facts.path = host.path;
  facts.os_pid = os_pid(host, map);
  const auto mapped = map.find(facts.os_pid);
  facts.mapped = mapped != map.end();
  facts.pid = facts.mapped ? mapped->second : metadata.pid;
  facts.hostname = metadata.hostname;
  facts.boot_id = metadata.boot_id;
  facts.pid_namespace = metadata.pid_namespace.value_or(0);
  facts.session.add(relation.to_trace(metadata.start_monotonic_ns),
                    relation.to_trace(metadata.stop_monotonic_ns));
  return facts;
}

// A relation to place a host file's spans by; where it cannot be known,
// `problem` says why, and the wall clock still tells whether they overlap.
struct Placement {
  ClockRelation relation;
  std::string problem;
};

Placement placement_for(const TraceJob& job,
                        const HostFile& host,
                        const MergeOptions& options) {
  const ClockRelation* given =
      options.clocks.find(os_pid(host, options.pid_map));
  if (given != nullptr) {
    return {*given, {}};
  }
  Placement wall{realtime_relation(host.metadata, host.clocks), {}};
  if (!job.decided.ascend) {
    return wall;
  }
  Result<ClockRelation> relation = ascend_relation(
      job.ascend, job.decided.device_rows, job.decided.window, host);
  if (relation) {
    return {std::move(*relation), {}};
  }
  wall.problem = relation.error().message;
  return wall;
}

bool is_given(const ClockRelation& relation) {
  return relation.source() == "offset" || relation.source() == "anchors";
}

// The first step of the wall clock that the trace's window meets.
const ClockStep* step_inside(const ClockRelation& relation,
                             const TimeWindow& window) {
  for (const ClockStep& step : relation.steps()) {
    const int64_t from = relation.to_trace(step.from_ns);
    const int64_t to = relation.to_trace(step.to_ns);
    if (std::min(from, to) <= window.end &&
        std::max(from, to) >= window.begin) {
      return &step;
    }
  }
  return nullptr;
}

constexpr const char* kGiveClock =
    "; give --clock-offset-ns or --clock-anchors-ns";

// Why the spans of a host file cannot be placed in the trace; empty if they
// can.
std::string clock_problem(const TraceJob& job,
                          const HostFile& host,
                          const Placement& placement) {
  const ClockRelation& relation = placement.relation;
  if (is_given(relation)) {
    return {};
  }
  if (!job.decided.base_known) {
    return job.decided.base_reason + kGiveClock;
  }
  if (!placement.problem.empty()) {
    return placement.problem + kGiveClock;
  }
  const ClockStep* step = step_inside(relation, job.decided.window);
  return step == nullptr ? std::string()
                         : "the wall clock of " + host.path + " was set by " +
                               std::to_string(step->by_ns) +
                               " ns during the capture" + kGiveClock;
}

TraceFacts trace_facts(const TraceJob& job) {
  TraceFacts facts;
  for (const size_t index : job.decided.hosts) {
    facts.host_pids.push_back(*job.scanned.scan.processes[index].pid);
  }
  facts.host_name =
      job.decided.ascend ? job.ascend.host_name : job.scanned.scan.host_name;
  facts.window = job.decided.window;
  return facts;
}

MergedHost describe(const TraceJob& job,
                    const HostFile& host,
                    const ClockRelation& relation) {
  MergedHost out;
  out.path = host.path;
  out.clock.source = relation.source();
  out.clock.offset_ns = relation.offset_ns();
  if (!is_given(relation)) {
    const int64_t grain = job.decided.style.grain_ns;
    out.clock.uncertainty_ns = relation.uncertainty_ns() + grain / 2;
  }
  return out;
}

const TraceProcess* process_of(const TraceJob& job) {
  for (const size_t index : job.decided.hosts) {
    const TraceProcess& process = job.scanned.scan.processes[index];
    if (process.pid == job.report.pid) {
      return &process;
    }
  }
  return nullptr;
}

EmitProcess rows_beside(const TraceProcess& process) {
  EmitProcess target(process.pid.value_or(0));
  target.pid_token = process.pid_token;
  target.own_rows = true;
  for (const auto& [token, thread] : process.threads) {
    if (thread.tid) {
      target.chooser.take(*thread.tid);
      if (thread.sort_index) {
        target.sort_index[*thread.tid] = *thread.sort_index;
      }
    }
  }
  return target;
}

Status write_spans(TraceJob& job, TextSink& sink, const std::string& spill) {
  const TraceProcess* process = process_of(job);
  EmitProcess target = rows_beside(*process);
  SpanEmitter emitter(
      sink, job.decided.style, spill, job.scanned.scan.has_events);
  for (size_t i = 0; i < job.hosts.size(); ++i) {
    const EmitPlace place{&job.relations[i], &job.decided.window};
    const Status emitted = emitter.emit_file(job.hosts[i]->path, target, place);
    if (!emitted) {
      return emitted;
    }
  }
  job.report.spans = emitter.counts().spans;
  job.report.async = emitter.counts().async;
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

// The scan's own file again, or, where somebody has replaced it meanwhile, a
// new scan of what is there.
Status reopen(TraceJob& job, const UniqueFd& fd) {
  struct stat now;
  if (fstat(fd.get(), &now) != 0) {
    return errno_error(job.path, errno);
  }
  if (FileIdentity::of(now) == job.scanned.identity) {
    return {};
  }
  Result<ScannedTrace> again = scan_file(fd.get());
  if (!again) {
    return context(job.path, again.error());
  }
  job.scanned = std::move(*again);
  job.decided = classify(job.scanned.scan);
  if (job.decided.verdict != Verdict::kTrace || process_of(job) == nullptr) {
    return error(job.path + ": was replaced by another file meanwhile");
  }
  return {};
}

Status write_trace(TraceJob& job, const MergeOptions& options) {
  const Result<std::string> path = output_path(job, options);
  if (!path) {
    return tl::unexpected<Error>(path.error());
  }
  const bool in_place = options.output_dir.empty();
  const Result<UniqueFd> in =
      in_place ? open_locked(job.path) : open_for_reading(job.path);
  if (!in) {
    return tl::unexpected<Error>(in.error());
  }
  Status state = reopen(job, *in);
  if (!state) {
    return state;
  }
  Result<OutputFile> out = OutputFile::create(*path);
  if (!out) {
    return tl::unexpected<Error>(out.error());
  }
  const std::string spill = directory_of(*path);
  state = splice(in->get(), job.scanned, out->fd(), [&](TextSink& sink) {
    return write_spans(job, sink, spill);
  });
  state = state ? out->copy_mode(in->get()) : state;
  struct stat after;
  if (state && (fstat(in->get(), &after) != 0 ||
                !(FileIdentity::of(after) == job.scanned.identity))) {
    state = error("changed while it was read");
  }
  if (!state) {
    return context(job.path, state.error());
  }
  job.report.output = *path;
  return out->commit();
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

}  // namespace

bool is_open(const TraceJob& job) {
  return job.report.reason.empty();
}

void scan_job(TraceJob& job) {
  const Result<UniqueFd> fd = open_for_reading(job.path);
  if (!fd) {
    end_job(job, TraceOutcome::kFailed, std::strerror(fd.error().errno_value));
    return;
  }
  Result<ScannedTrace> scanned = scan_file(fd->get());
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

void plan_job(TraceJob& job,
              const std::vector<HostFile>& hosts,
              const MergeOptions& options) {
  std::vector<Placement> placements;
  std::vector<HostFacts> facts;
  for (const HostFile& host : hosts) {
    placements.push_back(placement_for(job, host, options));
    const ClockRelation& relation = placements.back().relation;
    facts.push_back(facts_of(host, relation, options.pid_map));
    // Without a base only a given clock can tell whether they overlap.
    if (!job.decided.base_known && !is_given(relation)) {
      facts.back().session = job.decided.window;
    }
  }
  const Match match = match_trace(trace_facts(job), facts);
  if (!match.problem.empty()) {
    end_job(job,
            match.ambiguous ? TraceOutcome::kFailed : TraceOutcome::kSkipped,
            match.problem);
    return;
  }
  job.report.pid = match.pid;
  for (const size_t i : match.hosts) {
    const std::string problem = clock_problem(job, hosts[i], placements[i]);
    if (!problem.empty()) {
      end_job(job, TraceOutcome::kFailed, problem);
      return;
    }
    job.hosts.push_back(&hosts[i]);
    const ClockRelation& relation = placements[i].relation;
    job.relations.push_back(relation);
    job.report.hosts.push_back(describe(job, hosts[i], relation));
    if (!hosts[i].metadata.complete) {
      job.report.warnings.push_back(hosts[i].path + " is not complete");
    }
  }
}

void splice_job(TraceJob& job, const MergeOptions& options) {
  NoSink nowhere;
  const Status state = options.dry_run ? write_spans(job, nowhere, "/tmp")
                                       : write_trace(job, options);
  if (!state) {
    end_job(job, TraceOutcome::kFailed, state.error().message);
    return;
  }
  job.report.outcome = TraceOutcome::kMerged;
}

}  // namespace shp
