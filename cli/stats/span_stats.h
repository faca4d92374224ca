// What `shp top` and `shp stats` say of spans: how many of each name, how long
// they took, and how much of a thread's time that was.
//
// Memory is bounded by names and threads, not by spans. The spans of a thread
// come in the order in which they ended, as host files hold them. For one
// thread of ours.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/stats/duration_histogram.h"
#include "common/jsonl/host_types.h"

namespace shp {

// Spans that ended, of which a later one may turn out to be the parent.
class EndedSpans {
 public:
  // How much of [start, end) behind `from` earlier spans covered, if they lie
  // within it. They are forgotten: the new one covers for them.
  int64_t take(int64_t start_ns, int64_t end_ns, int64_t from_ns);

 private:
  // Beyond so many the oldest two become one: a parent that begins between
  // them would find neither.
  static constexpr size_t kMost = 256;

  struct Ended {
    int64_t start_ns;
    int64_t end_ns;
    int64_t covered_ns;  // less than its length for two that became one
  };
  std::deque<Ended> ended_;
};

struct NameRow {
  std::string name;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t self_ns = 0;  // less what spans within it on its thread took
  int64_t min_ns = 0;
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
  int64_t max_ns = 0;
  // Of the thread that gave most of its time to these spans, which part: 0 to
  // 1. Nested spans of one name count once.
  double thread_share = 0;
  size_t threads = 0;
};

class SpanStats {
 public:
  // The time that `process` (any number that the caller gives it) is looked at
  // for: spans count for a share from `begin_ns` on, of `length_ns`.
  void set_window(uint64_t process, int64_t begin_ns, int64_t length_ns);
  void take(uint64_t process, const HostSpan& span);

  // The names' numbers so far, most time first.
  std::vector<NameRow> rows() const;
  uint64_t spans() const { return spans_; }

  // Forgets the numbers and keeps what is known of nesting.
  void clear_numbers();
  void forget_process(uint64_t process) { processes_.erase(process); }

 private:
  struct OfThread {  // of one name on one thread
    EndedSpans ended;
    int64_t covered_ns = 0;
    uint64_t count = 0;
  };
  struct Name {
    DurationHistogram durations;
    int64_t total_ns = 0;
    int64_t self_ns = 0;
  };
  struct Thread {
    EndedSpans ended;
    std::unordered_map<uint32_t, OfThread> names;
  };
  struct Process {
    int64_t begin_ns = 0;
    int64_t length_ns = 0;
    std::unordered_map<int64_t, Thread> threads;
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  uint32_t number_of(std::string_view quoted_name);

  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<Name> names_;
  std::map<uint64_t, Process> processes_;
  uint64_t spans_ = 0;
};

}  // namespace shp
