#include "cli/trace/merge_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal_text.h"
#include "common/jsonl/json_check.h"

namespace shp {
namespace {

std::string width(int64_t ns) {
  return ns < 1000 ? fmt::format("{} ns", ns)
                   : fmt::format("{:.1f} µs", static_cast<double>(ns) / 1000.0);
}

std::string clock_words(const TraceReport& trace) {
  const MergedClock& first = trace.hosts.front().clock;
  std::optional<int64_t> uncertainty;
  for (const MergedHost& host : trace.hosts) {
    if (host.clock.uncertainty_ns) {
      uncertainty =
          std::max(uncertainty.value_or(0), *host.clock.uncertainty_ns);
    }
  }
  return fmt::format("clock {} {:+} ns, {}",
                     first.source,
                     first.offset_ns,
                     uncertainty ? "±" + width(*uncertainty) : "given");
}

std::string plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string trace_line(const TraceReport& trace, bool dry_run) {
  if (trace.outcome == TraceOutcome::kSkipped) {
    return fmt::format("{}: skipped: {}\n",
                       for_terminal(trace.name),
                       for_terminal(trace.reason));
  }
  return fmt::format(
      "{}: {}{}{} from {}, {}\n",
      for_terminal(trace.name),
      dry_run ? "would put in " : "",
      plural(trace.spans, "span"),
      trace.marks > 0 ? " and " + plural(trace.marks, "mark") : std::string(),
      plural(trace.hosts.size(), "host file"),
      clock_words(trace));
}

std::string number_or_null(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "null";
}

std::string clock_json(const MergedHost& host) {
  return fmt::format(
      R"({{"path":{},"pid":{},"clock":{{"source":{},"offset_ns":{},"uncertainty_ns":{}}}}})",
      json_quote(host.path),
      host.pid,
      json_quote(host.clock.source),
      host.clock.offset_ns,
      number_or_null(host.clock.uncertainty_ns));
}

const char* outcome_name(TraceOutcome outcome) {
  switch (outcome) {
    case TraceOutcome::kMerged:
      return "merged";
    case TraceOutcome::kSkipped:
      return "skipped";
    default:
      return "failed";
  }
}

template <typename Items, typename ToText>
std::string json_list(const Items& items, const ToText& to_text) {
  std::string out;
  for (const auto& item : items) {
    out.append(out.empty() ? "" : ",").append(to_text(item));
  }
  return "[" + out + "]";
}

std::string facts_json(const TraceReport& trace) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  const bool timed = !trace.window.empty();
  return fmt::format(
      R"(,"kind":{},"base_ns":{},"rank":{},"host_pids":{},"window_ns":{})",
      json_quote(trace.kind),
      number_or_null(trace.base_ns),
      number_or_null(trace.rank),
      json_list(trace.host_pids, number),
      timed ? fmt::format("[{},{}]", trace.window.begin, trace.window.end)
            : "null");
}

std::string trace_json(const TraceReport& trace) {
  std::string out = fmt::format(R"({{"trace":{},"outcome":"{}")",
                                json_quote(trace.name),
                                outcome_name(trace.outcome));
  if (!trace.kind.empty()) {
    out += facts_json(trace);
  }
  if (trace.outcome != TraceOutcome::kMerged) {
    return out + fmt::format(R"(,"reason":{}}})", json_quote(trace.reason));
  }
  return out +
         fmt::format(
             R"(,"output":{},"spans":{},"async":{},)"
             R"("unfinished":{},"marks":{},"replaced_events":{},"hosts":{},)"
             R"("warnings":{}}})",
             json_quote(trace.output),
             trace.spans,
             trace.async,
             trace.unfinished,
             trace.marks,
             trace.replaced_events,
             json_list(trace.hosts, clock_json),
             json_list(trace.warnings, json_quote));
}

std::string host_json(const HostReport& host) {
  return fmt::format(
      R"({{"path":{},"pid":{},"hostname":{},"used":{},"problem":{}}})",
      json_quote(host.path),
      host.pid,
      json_quote(host.hostname),
      host.used,
      host.problem.empty() ? "null" : json_quote(host.problem));
}

}  // namespace

std::string report_lines(const MergeReport& report, bool dry_run) {
  std::string out;
  for (const TraceReport& trace : report.traces) {
    if (trace.outcome != TraceOutcome::kFailed) {
      out += trace_line(trace, dry_run);
    }
  }
  for (const HostReport& host : report.hosts) {
    if (!host.used && host.problem.empty()) {
      out += fmt::format("{}: matches no trace (pid {}, host {})\n",
                         for_terminal(host.path),
                         host.pid,
                         for_terminal(host.hostname));
    }
  }
  return out;
}

std::vector<std::string> report_problems(const MergeReport& report) {
  std::vector<std::string> lines;
  for (const HostReport& host : report.hosts) {
    if (!host.problem.empty()) {
      lines.push_back(host.problem);
    }
  }
  for (const TraceReport& trace : report.traces) {
    if (trace.outcome == TraceOutcome::kFailed) {
      lines.push_back(trace.name + ": " + trace.reason);
    }
    for (const std::string& warning : trace.warnings) {
      lines.push_back(fmt::format("warning: {}: {}", trace.name, warning));
    }
  }
  if (report.count(TraceOutcome::kFailed) == 0 &&
      report.count(TraceOutcome::kMerged) == 0) {
    lines.push_back("no trace got any spans");
  }
  return lines;
}

std::string report_json(const MergeReport& report, bool dry_run) {
  return fmt::format("{{\"dry_run\":{},\"traces\":{},\"host_files\":{}}}\n",
                     dry_run,
                     json_list(report.traces, trace_json),
                     json_list(report.hosts, host_json));
}

}  // namespace shp
