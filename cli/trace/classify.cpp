#include "cli/trace/classify.h"

#include <algorithm>

namespace shp {
namespace {

// µs since 1970 have 16 digits from 2001 to 2286; relative ones stay below
// 7889238 s, which is where Kineto moves its base on.
constexpr int64_t kAbsoluteNs = 1'000'000'000'000'000'000;
constexpr int64_t kRelativeNs = 100'000'000'000'000'000;

// A viewer reads ts into a double: from 2^50 µs on it is off by up to 125 ns,
// below 2^43 µs it is exact to the ns. Multiples of 250 ns are exact there, so
// that spans which nest in the file nest on the screen.
constexpr int64_t kExactBelowNs = (int64_t{1} << 43) * 1000;
constexpr int64_t kCoarseGrainNs = 250;

TraceClass skip(std::string reason) {
  TraceClass out;
  out.verdict = Verdict::kSkip;
  out.reason = std::move(reason);
  return out;
}

TraceClass refuse(std::string reason) {
  TraceClass out = skip(std::move(reason));
  out.verdict = Verdict::kRefuse;
  return out;
}

bool all_pids_are_names(const TraceScan& scan) {
  return std::none_of(scan.processes.begin(),
                      scan.processes.end(),
                      [](const TraceProcess& p) { return p.pid.has_value(); });
}

bool is_legacy(const TraceScan& scan) {
  return std::any_of(
      scan.processes.begin(), scan.processes.end(), [](const TraceProcess& p) {
        return p.pid_token == "\"CPU functions\"" ||
               p.pid_token == "\"CUDA functions\"";
      });
}

// Ascend's rows come in one array with quoted times; the host's own row is the
// one called "Python", while "CANN" is labelled CPU too.
bool is_ascend(const TraceScan& scan) {
  if (scan.form != TraceForm::kArray) {
    return false;
  }
  return scan.quoted_times > 0 ||
         std::any_of(scan.processes.begin(),
                     scan.processes.end(),
                     [](const TraceProcess& p) {
                       return p.name == "Python" || p.name == "CANN" ||
                              p.name == "Ascend Hardware";
                     });
}

bool has_device_rows(const TraceScan& scan) {
  return std::any_of(
      scan.processes.begin(), scan.processes.end(), [](const TraceProcess& p) {
        return p.name == "CANN" || p.name == "Ascend Hardware";
      });
}

bool is_host(const TraceProcess& process, bool ascend) {
  if (!process.pid || *process.pid <= 0) {
    return false;
  }
  return ascend ? process.name == "Python"
                : process.labelled_cpu || process.host_events > 0;
}

std::vector<size_t> host_processes(const TraceScan& scan, bool ascend) {
  std::vector<size_t> found;
  for (size_t i = 0; i < scan.processes.size(); ++i) {
    if (is_host(scan.processes[i], ascend)) {
      found.push_back(i);
    }
  }
  // The row with most of the host's events is the process itself.
  std::stable_sort(found.begin(), found.end(), [&](size_t a, size_t b) {
    return scan.processes[a].host_events > scan.processes[b].host_events;
  });
  return found;
}

// Kineto's own marks where it wrote them; else what the events span, those of
// the host first, since a device's clock may be far off.
TimeWindow capture_window(const TraceScan& scan, const TraceClass& decided) {
  TimeWindow window;
  if (scan.iteration_start && scan.window_end &&
      *scan.iteration_start <= *scan.window_end) {
    window.add(*scan.iteration_start, *scan.window_end);
    return window;
  }
  for (const size_t host : decided.hosts) {
    const TimeWindow& own = scan.processes[host].window;
    if (!own.empty()) {
      window.add(own.begin, own.end);
    }
  }
  return window.empty() ? scan.window : window;
}

void decide_base(const TraceScan& scan, TraceClass& out) {
  const int64_t largest = scan.window.empty() ? 0 : scan.window.end;
  out.base_known = true;
  if (scan.base_ns) {
    out.kind = "kineto base";
    out.style.base_ns = *scan.base_ns;
    if (largest >= kAbsoluteNs) {
      out.base_known = false;
      out.base_reason = "has a baseTimeNanoseconds and absolute times as well";
    }
    return;
  }
  out.kind = out.ascend ? "ascend" : "kineto absolute";
  if (largest >= kAbsoluteNs) {
    return;
  }
  out.base_known = false;
  out.base_reason =
      scan.has_odd_base ? "its baseTimeNanoseconds is no integer"
      : largest < kRelativeNs
          ? "its times are relative and it has no baseTimeNanoseconds"
          : "its times are neither absolute nor relative to a known base";
}

void shift_window(TraceClass& out, TimeWindow window) {
  if (window.empty()) {
    return;
  }
  const bool fits =
      !__builtin_add_overflow(
          window.begin, out.style.base_ns, &out.window.begin) &&
      !__builtin_add_overflow(window.end, out.style.base_ns, &out.window.end);
  if (!fits) {
    out.window = {};
    out.base_known = false;
    out.base_reason = "its times do not fit 64 bits of ns";
  }
}

}  // namespace

TraceClass classify(const TraceScan& scan) {
  if (!scan.not_a_trace.empty()) {
    return skip(scan.not_a_trace);
  }
  if (scan.made_by_export) {
    return skip("was made by shp export");
  }
  if (is_legacy(scan)) {
    return refuse(
        "is of the legacy autograd profiler, whose times and pids say nothing "
        "of the host's");
  }
  if (scan.events == 0) {
    return skip("is a trace without events");
  }
  if (scan.processes.empty()) {
    return skip("is a trace whose events have no pid");
  }
  if (all_pids_are_names(scan)) {
    return skip("has names for pids (merged already by another tool)");
  }
  TraceClass out;
  out.ascend = is_ascend(scan);
  out.device_rows = has_device_rows(scan);
  out.hosts = host_processes(scan, out.ascend);
  if (out.hosts.empty()) {
    // rpd2tracing.py writes "[ {}" and a comma before every event.
    return skip(scan.starts_empty ? "is a conversion of an rpd file"
                                  : "has no process of the host in it");
  }
  if (scan.window.empty()) {
    return skip("has no event with a time");
  }
  decide_base(scan, out);
  out.style.quoted = scan.quoted_times > scan.plain_times;
  out.style.grain_ns = scan.window.end < kExactBelowNs ? 1 : kCoarseGrainNs;
  shift_window(out, capture_window(scan, out));
  return out;
}

}  // namespace shp
