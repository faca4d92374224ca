#include "cli/stats/span_stats.h"

#include <algorithm>

#include "common/jsonl/json_check.h"

namespace shp {

int64_t EndedSpans::take(int64_t start_ns, int64_t end_ns, int64_t from_ns) {
  int64_t covered = 0;
  while (!ended_.empty() && ended_.back().start_ns >= start_ns &&
         ended_.back().end_ns <= end_ns) {
    const Ended& inner = ended_.back();
    const int64_t visible = inner.end_ns - std::max(inner.start_ns, from_ns);
    covered += std::clamp<int64_t>(visible, 0, inner.covered_ns);
    ended_.pop_back();
  }
  ended_.push_back({start_ns, end_ns, end_ns - start_ns});
  if (ended_.size() > kMost) {
    const Ended oldest = ended_.front();
    ended_.pop_front();
    ended_.front().start_ns = oldest.start_ns;
    ended_.front().covered_ns += oldest.covered_ns;
  }
  return covered;
}

void SpanStats::set_window(uint64_t process,
                           int64_t begin_ns,
                           int64_t length_ns) {
  Process& target = processes_[process];
  target.begin_ns = begin_ns;
  target.length_ns = length_ns;
}

uint32_t SpanStats::number_of(std::string_view quoted_name) {
  const auto known = numbers_.find(quoted_name);
  if (known != numbers_.end()) {
    return known->second;
  }
  const auto number = static_cast<uint32_t>(names_.size());
  numbers_.emplace(quoted_name, number);
  names_.emplace_back();
  return number;
}

void SpanStats::take(uint64_t process, const HostSpan& span) {
  Process& of_process = processes_[process];
  Thread& thread = of_process.threads[span.tid];
  const uint32_t number = number_of(span.name);
  OfThread& here = thread.names[number];
  const int64_t end_ns = span.start_ns + span.duration_ns;
  const int64_t from_ns = of_process.begin_ns;
  const int64_t visible =
      std::max<int64_t>(end_ns - std::max(span.start_ns, from_ns), 0);
  here.covered_ns += visible - here.ended.take(span.start_ns, end_ns, from_ns);
  ++here.count;
  Name& name = names_[number];
  name.durations.add(span.duration_ns);
  name.total_ns += span.duration_ns;
  name.self_ns += span.duration_ns -
                  thread.ended.take(span.start_ns, end_ns, span.start_ns);
  ++spans_;
}

std::vector<NameRow> SpanStats::rows() const {
  std::vector<NameRow> rows(names_.size());
  for (const auto& [quoted, number] : numbers_) {
    const Name& name = names_[number];
    rows[number] = {json_unescape(quoted),
                    name.durations.count(),
                    name.total_ns,
                    name.self_ns,
                    name.durations.min(),
                    name.durations.percentile(0.5),
                    name.durations.percentile(0.99),
                    name.durations.max()};
  }
  for (const auto& [id, process] : processes_) {
    const auto length =
        static_cast<double>(std::max<int64_t>(process.length_ns, 1));
    for (const auto& [tid, thread] : process.threads) {
      for (const auto& [number, here] : thread.names) {
        NameRow& row = rows[number];
        row.threads += here.count > 0 ? 1 : 0;
        row.thread_share = std::max(
            row.thread_share, static_cast<double>(here.covered_ns) / length);
      }
    }
  }
  std::erase_if(rows, [](const NameRow& row) { return row.count == 0; });
  for (NameRow& row : rows) {
    row.thread_share = std::min(row.thread_share, 1.0);
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  return rows;
}

void SpanStats::clear_numbers() {
  std::fill(names_.begin(), names_.end(), Name());
  for (auto& [id, process] : processes_) {
    for (auto& [tid, thread] : process.threads) {
      for (auto& [number, here] : thread.names) {
        here.covered_ns = 0;
        here.count = 0;
      }
    }
  }
  spans_ = 0;
}

}  // namespace shp
