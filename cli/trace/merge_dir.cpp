#include "cli/trace/merge_dir.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "cli/trace/combine.h"
#include "cli/trace/find_files.h"
#include "cli/trace/manifest.h"
#include "cli/trace/merge_trace.h"
#include "cli/trace/output_file.h"

namespace shp {
namespace {

// Some 16 MiB of memory each at most.
constexpr size_t kMaxWorkers = 4;

// Calls work(i) for i = 0 … count-1 on as many threads as there are cores, and
// one more, since each waits for the disk now and then.
void for_each_index(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) {
      work(i);
    }
  };
  const size_t workers =
      std::min<size_t>(std::thread::hardware_concurrency() + 1, kMaxWorkers);
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(workers, count); ++i) {
    others.emplace_back(loop);
  }
  loop();
  for (std::thread& other : others) {
    other.join();
  }
}

struct Hosts {
  std::vector<HostSummary> files;  // the usable ones
  std::vector<HostReport> reports;
};

// Gives each file what its manifest says; one that does not match makes the
// file unusable, one whose file is not here is a problem of its own.
Status use_manifests(const std::string& directory,
                     std::vector<Result<HostSummary>>& files,
                     std::vector<HostReport>& reports) {
  const Result<std::vector<std::string>> paths = find_manifests(directory);
  if (!paths) {
    return tl::unexpected<Error>(paths.error());
  }
  for (const std::string& path : *paths) {
    const Result<Manifest> manifest = read_manifest(path);
    const auto named = std::find_if(
        reports.begin(), reports.end(), [&](const HostReport& report) {
          return manifest && report.path == manifest->host_path;
        });
    if (named == reports.end()) {
      reports.emplace_back().path = path;
      reports.back().problem = manifest
                                   ? path + ": its host file is not beside it"
                                   : manifest.error().message;
      continue;
    }
    Result<HostSummary>& file =
        files[static_cast<size_t>(named - reports.begin())];
    const Status applied = file ? apply_manifest(*manifest, *file) : Status{};
    if (!applied) {
      file = tl::unexpected<Error>(applied.error());
    }
  }
  return {};
}

Result<Hosts> load_hosts(const std::string& directory) {
  const Result<FoundHosts> found = find_host_files(directory);
  if (!found) {
    return tl::unexpected<Error>(found.error());
  }
  const std::vector<std::string>& paths = found->files;
  if (paths.empty()) {
    return error("No closed Host JSONL files found under " + directory);
  }
  std::vector<Result<HostSummary>> loaded(paths.size(), HostSummary());
  for_each_index(paths.size(),
                 [&](size_t i) { loaded[i] = load_host_file(paths[i]); });
  Hosts hosts;
  for (const std::string& path : paths) {
    hosts.reports.emplace_back().path = path;
  }
  const Status used = use_manifests(directory, loaded, hosts.reports);
  if (!used) {
    return tl::unexpected<Error>(used.error());
  }
  for (const PassedFile& unreadable : found->unreadable) {
    hosts.reports.emplace_back().path = unreadable.path;
    hosts.reports.back().problem = unreadable.path + ": " + unreadable.reason;
  }
  for (size_t i = 0; i < loaded.size(); ++i) {
    HostReport& report = hosts.reports[i];
    Result<HostSummary>& file = loaded[i];
    if (file) {
      report.pid = file->metadata.pid;
      report.hostname = file->metadata.hostname;
      hosts.files.push_back(std::move(*file));
    } else {
      report.problem = file.error().message;
    }
  }
  return hosts;
}

// Whether `path` lies under `directory`, whatever either is called.
bool is_below(const std::string& path, const std::string& directory) {
  std::error_code problem;
  const auto real = std::filesystem::weakly_canonical(path, problem);
  const auto above = std::filesystem::weakly_canonical(directory, problem);
  const auto relative = real.lexically_relative(above).string();
  return !problem && !relative.empty() && relative.compare(0, 2, "..") != 0;
}

Result<std::vector<TraceJob>> find_jobs(const Hosts& hosts,
                                        const MergeOptions& options) {
  const std::string& root = options.torch_dir;
  const Result<FoundFiles> found = find_trace_files(root);
  if (!found) {
    return tl::unexpected<Error>(found.error());
  }
  if (!options.dry_run) {
    std::for_each(
        found->temporaries.begin(), found->temporaries.end(), remove_leftover);
  }
  std::vector<TraceJob> jobs;
  const auto add = [&](const std::string& path,
                       const std::string& reason,
                       TraceOutcome outcome) {
    const bool host_file =
        std::any_of(hosts.reports.begin(),
                    hosts.reports.end(),
                    [&](const HostReport& host) { return host.path == path; });
    // What an earlier run wrote elsewhere under the root is no input.
    const bool result =
        !options.output_dir.empty() && is_below(path, options.output_dir);
    if (host_file || result) {
      return;
    }
    TraceJob& job = jobs.emplace_back();
    job.path = path;
    job.report.name =
        std::filesystem::path(path).lexically_relative(root).string();
    job.report.reason = reason;
    job.report.outcome = outcome;
  };
  for (const std::string& path : found->files) {
    add(path, {}, TraceOutcome::kSkipped);
  }
  for (const PassedFile& passed : found->passed) {
    add(passed.path, passed.reason, TraceOutcome::kSkipped);
  }
  for (const PassedFile& unreadable : found->unreadable) {
    add(unreadable.path, unreadable.reason, TraceOutcome::kFailed);
  }
  std::sort(jobs.begin(), jobs.end(), [](const TraceJob& a, const TraceJob& b) {
    return a.path < b.path;
  });
  return jobs;
}

// One clock for all would put all but one trace in the wrong place.
Status check_given(std::vector<TraceJob> jobs,
                   const std::vector<HostSummary>& hosts,
                   const MergeOptions& options) {
  if (!options.clocks.only) {
    return {};
  }
  for_each_index(jobs.size(), [&](size_t i) {
    if (is_open(jobs[i])) {
      look_at_job(jobs[i], hosts, options);
    }
  });
  const auto open = std::count_if(jobs.begin(), jobs.end(), is_open);
  if (open > 1) {
    return error("one clock was given for " + std::to_string(open) +
                 " traces; give a JSON object keyed by Host OS PIDs instead");
  }
  return {};
}

Status check_directory(const std::string& path, const char* what) {
  std::error_code problem;
  const auto status = std::filesystem::status(path, problem);
  if (problem) {
    return error(path + ": " + problem.message());
  }
  if (!std::filesystem::is_directory(status)) {
    return error(what);
  }
  return {};
}

// Every thread that finishes a trace says so, one at a time.
class Progress {
 public:
  Progress(OnProgress tell, size_t all) : tell_(tell), all_(all) {}
  void one_done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++done_;
    if (tell_ != nullptr) {
      tell_(done_, all_);
    }
  }

 private:
  std::mutex mutex_;
  OnProgress tell_;
  size_t all_;
  size_t done_ = 0;
};

Status combine(std::vector<TraceJob>& jobs,
               const std::vector<HostSummary>& hosts,
               const MergeOptions& options) {
  for_each_index(jobs.size(), [&](size_t i) {
    if (is_open(jobs[i])) {
      look_at_job(jobs[i], hosts, options);
    }
  });
  return combine_traces(jobs, hosts, options.combine);
}

void merge_each(std::vector<TraceJob>& jobs,
                const std::vector<HostSummary>& hosts,
                const MergeOptions& options,
                OnProgress on_progress) {
  Progress progress(
      on_progress,
      static_cast<size_t>(std::count_if(jobs.begin(), jobs.end(), is_open)));
  for_each_index(jobs.size(), [&](size_t i) {
    if (is_open(jobs[i])) {
      merge_job(jobs[i], hosts, options);
      progress.one_done();
    }
  });
}

void mark_used(const std::vector<TraceJob>& jobs, Hosts& hosts) {
  for (const TraceJob& job : jobs) {
    for (const PlannedHost& planned : job.plan) {
      for (HostReport& report : hosts.reports) {
        report.used = report.used || report.path == planned.host->path;
      }
    }
  }
}

}  // namespace

size_t MergeReport::count(TraceOutcome outcome) const {
  return static_cast<size_t>(std::count_if(
      traces.begin(), traces.end(), [&](const TraceReport& trace) {
        return trace.outcome == outcome;
      }));
}

bool MergeReport::ok() const {
  const bool bad_host =
      std::any_of(hosts.begin(), hosts.end(), [](const HostReport& host) {
        return !host.problem.empty();
      });
  return !bad_host && count(TraceOutcome::kFailed) == 0 &&
         count(TraceOutcome::kMerged) > 0;
}

Result<MergeReport> merge_dir(const MergeOptions& options,
                              OnProgress on_progress) {
  Status usable = check_directory(options.host_dir,
                                  "HOST_DIR must be a Host capture directory");
  usable = usable ? check_directory(options.torch_dir,
                                    "--torch-dir must be a directory")
                  : usable;
  if (!usable) {
    return tl::unexpected<Error>(usable.error());
  }
  Result<Hosts> hosts = load_hosts(options.host_dir);
  if (!hosts) {
    return tl::unexpected<Error>(hosts.error());
  }
  Result<std::vector<TraceJob>> jobs = find_jobs(*hosts, options);
  if (!jobs) {
    return tl::unexpected<Error>(jobs.error());
  }
  const Status given = check_given(*jobs, hosts->files, options);
  if (!given) {
    return tl::unexpected<Error>(given.error());
  }
  Status done;
  if (options.combine.empty()) {
    merge_each(*jobs, hosts->files, options, on_progress);
  } else {
    done = combine(*jobs, hosts->files, options);
  }
  if (!done) {
    return tl::unexpected<Error>(done.error());
  }
  mark_used(*jobs, *hosts);
  MergeReport report;
  for (TraceJob& job : *jobs) {
    report.traces.push_back(std::move(job.report));
  }
  report.hosts = std::move(hosts->reports);
  return report;
}

}  // namespace shp
