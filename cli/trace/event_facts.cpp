#include "cli/trace/event_facts.h"

#include "cli/trace/loose_json.h"

namespace shp {
namespace {

// Categories of events that stand on the rows of the host's own threads; the
// capitalised ones are of 2020-21. ActivityType.h of libkineto.
constexpr std::string_view kHostCategories[] = {
    "\"cpu_op\"",
    "\"python_function\"",
    "\"user_annotation\"",
    "\"cuda_runtime\"",
    "\"cuda_driver\"",
    "\"xpu_runtime\"",
    "\"xpu_driver\"",
    "\"cpu_instant_event\"",
    "\"Operator\"",
    "\"Runtime\"",
};

bool is_host_category(std::string_view token) {
  for (const std::string_view category : kHostCategories) {
    if (token == category) {
      return true;
    }
  }
  return false;
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

TraceProcess* EventFacts::process_of(std::string_view token) {
  std::vector<TraceProcess>& all = scan_.processes;
  if (last_process_ < all.size() && all[last_process_].pid_token == token) {
    return &all[last_process_];
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].pid_token == token) {
      last_process_ = i;
      return &all[i];
    }
  }
  if (all.size() == kMaxProcesses || token.size() > 4096) {
    return nullptr;
  }
  last_process_ = all.size();
  cached_process_ = nullptr;  // the vector may move
  TraceProcess& added = all.emplace_back();
  added.pid_token = token;
  added.pid = loose_int(token);
  return &added;
}

TraceThread* EventFacts::thread_of(TraceProcess& process,
                                   std::string_view token) {
  if (cached_process_ == &process && cached_tid_ == token) {
    return cached_thread_;
  }
  std::string key(token);
  auto found = process.threads.find(key);
  if (found == process.threads.end()) {
    if (threads_ == kMaxThreads || token.size() > 4096) {
      return nullptr;
    }
    ++threads_;
    found =
        process.threads.emplace(key, TraceThread{loose_int(token), {}}).first;
  }
  cached_process_ = &process;
  cached_tid_ = std::move(key);
  cached_thread_ = &found->second;
  return cached_thread_;
}

void EventFacts::take_metadata(const EventFields& fields,
                               TraceProcess& process,
                               TraceThread* thread) {
  const std::string_view what = loose_text(fields.name);
  if (what == "process_labels") {
    const std::string_view labels =
        loose_text(loose_member(fields.args, "labels"));
    process.label = labels;
    process.labelled_cpu = process.labelled_cpu || labels == "CPU";
    process.labelled_gpu =
        process.labelled_gpu || starts_with(labels, "GPU") || labels == "NPU";
  } else if (what == "process_name") {
    process.name = loose_text(loose_member(fields.args, "name"));
  } else if (what == "thread_sort_index" && thread != nullptr) {
    thread->sort_index = loose_int(loose_member(fields.args, "sort_index"));
  }
}

void EventFacts::take_mark(const EventFields& fields, int64_t at_ns) {
  const std::string_view name = loose_text(fields.name);
  if (starts_with(name, "Iteration Start")) {
    scan_.iteration_start =
        std::min(at_ns, scan_.iteration_start.value_or(at_ns));
  } else if (name == "Record Window End") {
    scan_.window_end = std::max(at_ns, scan_.window_end.value_or(at_ns));
  }
}

void EventFacts::take_time(const EventFields& fields, TraceProcess& process) {
  const std::optional<int64_t> ts = loose_ns(fields.ts);
  if (!ts) {
    return;
  }
  ++(fields.ts.front() == '"' ? scan_.quoted_times : scan_.plain_times);
  // Kineto writes a time that it could not convert as 0.
  if (*ts == 0) {
    return;
  }
  const int64_t dur = fields.dur.empty() ? 0 : loose_ns(fields.dur).value_or(0);
  int64_t end = 0;
  if (__builtin_add_overflow(*ts, dur < 0 ? 0 : dur, &end)) {
    return;
  }
  process.window.add(*ts, end);
  scan_.window.add(*ts, end);
  if (fields.ph == "\"i\"") {
    take_mark(fields, *ts);
  }
}

bool EventFacts::take(const EventFields& fields) {
  if (fields.pid.empty()) {
    return true;
  }
  TraceProcess* process = process_of(fields.pid);
  if (process == nullptr) {
    return false;
  }
  TraceThread* thread = nullptr;
  if (!fields.tid.empty()) {
    thread = thread_of(*process, fields.tid);
    if (thread == nullptr) {
      return false;
    }
  }
  if (fields.ph == "\"M\"") {
    take_metadata(fields, *process, thread);
    return true;
  }
  ++process->events;
  process->host_events += is_host_category(fields.cat) ? 1 : 0;
  // A flow's ends repeat the times of the events that they tie together.
  const char kind = fields.ph.size() == 3 ? fields.ph[1] : '\0';
  if (kind != 's' && kind != 't' && kind != 'f') {
    take_time(fields, *process);
  }
  return true;
}

}  // namespace shp
