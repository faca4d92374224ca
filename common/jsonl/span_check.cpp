#include "common/jsonl/span_check.h"

#include <iterator>

#include "common/jsonl/json_check.h"

namespace shp {
namespace {

constexpr int64_t kMaxId = int64_t{1} << 62;

// A name as a JSON string text: not empty and without NUL.
bool is_span_name(std::string_view quoted) {
  return quoted.size() > 2 && quoted.find("\\u0000") == std::string_view::npos;
}

// "\\u0000" is a backslash and five characters, no NUL: look again, exactly.
bool is_odd_span_name(std::string_view quoted) {
  return quoted.size() > 2 &&
         json_unescape(quoted).find('\0') == std::string::npos;
}

std::string check_owner(const HostSpan& span,
                        int64_t pid,
                        const HostMetadata& metadata) {
  if (pid != metadata.pid) {
    return "pid " + std::to_string(pid) + " is not the metadata's " +
           std::to_string(metadata.pid);
  }
  if (span.tid < 0) {
    return "tid is negative";
  }
  if (!is_span_name(span.name) && !is_odd_span_name(span.name)) {
    return "name is empty or holds NUL";
  }
  return {};
}

std::string check_count(const char* what,
                        int64_t held,
                        const std::optional<int64_t>& said) {
  if (!said || held == *said) {
    return {};
  }
  return "holds " + std::to_string(held) + " " + what + ", its metadata says " +
         std::to_string(*said) + " (cut off or edited)";
}

}  // namespace

bool SpanIds::add(int64_t id) {
  if (id == next_) {
    ++next_;
    return ranges_.empty() || add_range(id);
  }
  if (ranges_.empty() && next_ > 1) {
    ranges_.emplace(1, next_ - 1);
  }
  next_ = id + 1;
  return add_range(id);
}

bool SpanIds::add_range(int64_t id) {
  auto after = ranges_.upper_bound(id);
  if (after != ranges_.begin()) {
    const auto before = std::prev(after);
    if (before->second >= id) {
      return false;
    }
    if (before->second == id - 1) {
      before->second = id;
      if (after != ranges_.end() && after->first == id + 1) {
        before->second = after->second;
        ranges_.erase(after);
      }
      return true;
    }
  }
  int64_t last = id;
  if (after != ranges_.end() && after->first == id + 1) {
    last = after->second;
    ranges_.erase(after);
  }
  ranges_.emplace(id, last);
  return true;
}

std::string SpanCheck::take(const HostSpan& span, int64_t pid) {
  if (span.id <= 0) {
    return "span id " + std::to_string(span.id) + " is not positive";
  }
  if (span.id > kMaxId) {
    return "span id " + std::to_string(span.id) + " is too large";
  }
  if (!ids_.add(span.id)) {
    return "span id " + std::to_string(span.id) + " is there twice";
  }
  if (ids_.too_scattered()) {
    return "span ids are too scattered";
  }
  const std::string problem = check_owner(span, pid, metadata_);
  if (!problem.empty()) {
    return problem;
  }
  if (span.duration_ns < 0) {
    return "span ends before it starts";
  }
  if (span.start_ns < metadata_.start_monotonic_ns ||
      span.start_ns > metadata_.stop_monotonic_ns ||
      span.duration_ns > metadata_.stop_monotonic_ns - span.start_ns) {
    return "span is not within the session";
  }
  ++spans_;
  return {};
}

std::string SpanCheck::take_mark(const HostSpan& mark, int64_t pid) {
  const std::string problem = check_owner(mark, pid, metadata_);
  if (!problem.empty()) {
    return problem;
  }
  if (mark.start_ns < metadata_.start_monotonic_ns ||
      mark.start_ns > metadata_.stop_monotonic_ns) {
    return "mark is not within the session";
  }
  ++(mark.item == HostItem::kCounter ? counters_ : instants_);
  return {};
}

std::string SpanCheck::end() const {
  for (const std::string& problem :
       {check_count("spans", spans_, metadata_.written_spans),
        check_count("instants", instants_, metadata_.written_instants),
        check_count("counter values", counters_, metadata_.written_counters)}) {
    if (!problem.empty()) {
      return problem;
    }
  }
  return {};
}

}  // namespace shp
