#include "cli/trace/match.h"

#include <strings.h>

#include <algorithm>

namespace shp {
namespace {

bool overlaps(const TimeWindow& a, const TimeWindow& b) {
  return !a.empty() && !b.empty() && a.begin <= b.end && b.begin <= a.end;
}

// Two files of one pid are of two processes when they say so, or when their
// sessions overlap: a process has one session at a time.
bool different_processes(const HostFacts& a, const HostFacts& b) {
  const bool other_boot =
      !a.boot_id.empty() && !b.boot_id.empty() && a.boot_id != b.boot_id;
  const bool other_namespace = a.pid_namespace != 0 && b.pid_namespace != 0 &&
                               a.pid_namespace != b.pid_namespace;
  return !same_host_name(a.hostname, b.hostname) || other_boot ||
         other_namespace || overlaps(a.session, b.session);
}

std::string list_of(const std::vector<size_t>& found,
                    const std::vector<HostFacts>& hosts) {
  std::string text;
  for (const size_t i : found) {
    text += (text.empty() ? "" : ", ") + hosts[i].path + " (host " +
            hosts[i].hostname + ", OS pid " + std::to_string(hosts[i].os_pid) +
            ")";
  }
  return text;
}

bool are_several(const std::vector<size_t>& found,
                 const std::vector<HostFacts>& hosts) {
  for (const size_t other : found) {
    for (const size_t one : found) {
      if (one < other && different_processes(hosts[one], hosts[other])) {
        return true;
      }
    }
  }
  return false;
}

std::string ambiguity(int64_t pid,
                      const std::vector<size_t>& found,
                      const std::vector<HostFacts>& hosts) {
  const bool same_os_pid =
      std::all_of(found.begin(), found.end(), [&](size_t i) {
        return hosts[i].os_pid == hosts[found.front()].os_pid;
      });
  return "host files of several processes have pid " + std::to_string(pid) +
         ": " + list_of(found, hosts) + "; settle it with --pid-map" +
         (same_os_pid ? ", keyed by \"HOST:PID\"" : "");
}

// The host files of `pid`, step by step; `problem` is why there are none.
class Candidates {
 public:
  Candidates(const TraceFacts& trace,
             const std::vector<HostFacts>& hosts,
             int64_t pid)
      : hosts_(hosts), pid_(std::to_string(pid)) {
    for (size_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].pid == pid) {
        found_.push_back(i);
      }
    }
    problem_ = found_.empty() ? "no host file of pid " + pid_ : "";
    keep("is of host " + trace.host_name + ", not that of",
         [&](const HostFacts& host) {
           return trace.host_name.empty() ||
                  same_host_name(trace.host_name, host.hostname);
         });
    const std::string rank = std::to_string(trace.rank.value_or(0));
    keep("is of rank " + rank + ", not that of", [&](const HostFacts& host) {
      return !trace.rank || !host.rank || trace.rank == host.rank;
    });
    keep("does not overlap in time with", [&](const HostFacts& host) {
      return overlaps(trace.window, host.session);
    });
    prefer_mapped();
  }

  const std::vector<size_t>& found() const { return found_; }
  const std::string& problem() const { return problem_; }

 private:
  // What --pid-map names goes before what has the pid by itself.
  void prefer_mapped() {
    std::vector<size_t> mapped;
    for (const size_t i : found_) {
      if (hosts_[i].mapped) {
        mapped.push_back(i);
      }
    }
    if (!mapped.empty()) {
      found_ = std::move(mapped);
    }
  }

  template <typename Wanted>
  void keep(const std::string& why_not, const Wanted& wanted) {
    if (found_.empty()) {
      return;
    }
    std::vector<size_t> kept;
    for (const size_t i : found_) {
      if (wanted(hosts_[i])) {
        kept.push_back(i);
      }
    }
    if (kept.empty()) {
      problem_ = "pid " + pid_ + " " + why_not + " " + list_of(found_, hosts_);
    }
    found_ = std::move(kept);
  }

  const std::vector<HostFacts>& hosts_;
  std::string pid_;
  std::vector<size_t> found_;
  std::string problem_;
};

}  // namespace

bool same_host_name(const std::string& a, const std::string& b) {
  const std::string& shorter = a.size() <= b.size() ? a : b;
  const std::string& longer = a.size() <= b.size() ? b : a;
  const size_t size = shorter.size();
  return strncasecmp(shorter.c_str(), longer.c_str(), size) == 0 &&
         (longer.size() == size || (size > 0 && longer[size] == '.'));
}

Match match_trace(const TraceFacts& trace,
                  const std::vector<HostFacts>& hosts) {
  Match match;
  for (const int64_t pid : trace.host_pids) {
    const Candidates candidates(trace, hosts, pid);
    const std::vector<size_t>& found = candidates.found();
    if (found.empty()) {
      match.problem =
          match.problem.empty() ? candidates.problem() : match.problem;
      continue;
    }
    if (are_several(found, hosts)) {
      return {{}, ambiguity(pid, found, hosts), true};
    }
    match.processes.push_back({pid, found});
  }
  match.problem = match.processes.empty() ? match.problem : "";
  return match;
}

}  // namespace shp
