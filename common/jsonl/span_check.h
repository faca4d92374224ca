// What must hold for the spans of one session, whatever file they come from:
// ids positive and each once, the session's pid, a name, a place within the
// session, and in the end as many as the metadata says.
//
// For one reader of one file, on one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/jsonl/host_types.h"

namespace shp {

// Ids count 1, 2, 3 … in practice, which costs one comparison. What is out of
// order goes into ranges that grow together.
class SpanIds {
 public:
  // False when `id` was there before.
  bool add(int64_t id);
  bool too_scattered() const { return ranges_.size() > kMaxRanges; }

 private:
  static constexpr size_t kMaxRanges = 1U << 20;

  bool add_range(int64_t id);

  int64_t next_ = 1;
  std::map<int64_t, int64_t> ranges_;  // first id to last id
};

class SpanCheck {
 public:
  // `metadata` outlives this.
  explicit SpanCheck(const HostMetadata& metadata) : metadata_(metadata) {}

  // What is wrong with the next span, empty when nothing is.
  std::string take(const HostSpan& span, int64_t pid);
  // The same for a mark.
  std::string take_mark(const HostSpan& mark, int64_t pid);
  // The same of the file as a whole, after its last span.
  std::string end() const;

 private:
  const HostMetadata& metadata_;
  SpanIds ids_;
  int64_t spans_ = 0;
  int64_t instants_ = 0;
  int64_t counters_ = 0;
};

}  // namespace shp
