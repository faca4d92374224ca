// The planning half of merge_trace.h: which host files, by which clocks. Pure,
// but for what was read before.
#include <algorithm>
#include <optional>

#include "cli/trace/match.h"
#include "cli/trace/merge_trace.h"

namespace shp {
namespace {

// What the host calls the process; without --pid-map's word on that pid, what
// it calls itself.
int64_t os_pid(const HostMetadata& metadata, const PidMap& map) {
  const int64_t outer = metadata.host_pid.value_or(metadata.pid);
  return map.find(metadata.hostname, outer) != nullptr ? outer : metadata.pid;
}

HostFacts facts_of(const HostSummary& host,
                   const ClockRelation& relation,
                   const PidMap& map) {
  const HostMetadata& metadata = host.metadata;
  HostFacts facts;
  facts.path = host.path;
  const int64_t pid = os_pid(metadata, map);
  const int64_t* mapped = map.find(metadata.hostname, pid);
  facts.os_pid = metadata.host_pid.value_or(metadata.pid);
  facts.mapped = mapped != nullptr;
  facts.pid = facts.mapped ? *mapped : metadata.pid;
  facts.hostname = metadata.hostname;
  facts.rank = host.rank;
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
                        const HostSummary& host,
                        const MergeOptions& options) {
  const ClockRelation* given = options.clocks.find(
      host.metadata.hostname, os_pid(host.metadata, options.pid_map));
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
                          const HostSummary& host,
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
    // A pid may be there twice, as a number and as a string.
    const int64_t pid = *job.scanned.scan.processes[index].pid;
    if (std::count(facts.host_pids.begin(), facts.host_pids.end(), pid) == 0) {
      facts.host_pids.push_back(pid);
    }
  }
  facts.host_name =
      job.decided.ascend ? job.ascend.host_name : job.scanned.scan.host_name;
  facts.rank = job.report.rank;
  facts.window = job.decided.window;
  return facts;
}

MergedHost describe(const TraceJob& job, const PlannedHost& planned) {
  const ClockRelation& relation = planned.relation;
  MergedHost out;
  out.path = planned.host->path;
  out.pid = planned.process->pid.value_or(0);
  out.clock.source = relation.source();
  out.clock.offset_ns = relation.offset_ns();
  if (!is_given(relation)) {
    const int64_t grain = job.decided.style.grain_ns;
    out.clock.uncertainty_ns = relation.uncertainty_ns() + grain / 2;
  }
  return out;
}

void take_host(TraceJob& job, PlannedHost planned) {
  const HostSummary& host = *planned.host;
  std::vector<std::string>& warnings = job.report.warnings;
  if (!host.metadata.complete) {
    warnings.push_back(host.path + " is not complete");
  }
  // One inside the capture was refused.
  for (const ClockStep& step : planned.relation.steps()) {
    warnings.push_back("the wall clock of " + host.path + " was set by " +
                       std::to_string(step.by_ns) +
                       " ns during its session, outside the capture");
  }
  job.report.hosts.push_back(describe(job, planned));
  job.plan.push_back(std::move(planned));
}

const TraceProcess* process_of(const TraceJob& job, int64_t pid) {
  for (const size_t index : job.decided.hosts) {
    const TraceProcess& process = job.scanned.scan.processes[index];
    if (process.pid == pid) {
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

}  // namespace

Status for_planned(const TraceJob& job, const EmitPlanned& emit) {
  const TraceProcess* current = nullptr;
  std::optional<EmitProcess> rows;
  for (const PlannedHost& planned : job.plan) {
    if (planned.process != current) {
      current = planned.process;
      rows = rows_beside(*current);
    }
    const Status emitted = emit(planned, *rows);
    if (!emitted) {
      return emitted;
    }
  }
  return {};
}

void plan_job(TraceJob& job,
              const std::vector<HostSummary>& hosts,
              const MergeOptions& options) {
  std::vector<Placement> placements;
  std::vector<HostFacts> facts;
  for (const HostSummary& host : hosts) {
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
  for (const MatchedProcess& matched : match.processes) {
    const TraceProcess* process = process_of(job, matched.pid);
    for (const size_t i : matched.hosts) {
      const std::string problem = clock_problem(job, hosts[i], placements[i]);
      if (!problem.empty()) {
        end_job(job, TraceOutcome::kFailed, problem);
        return;
      }
      take_host(job, {&hosts[i], process, placements[i].relation});
    }
  }
}

}  // namespace shp
