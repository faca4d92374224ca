// Deciding, part four: which spans stand on a row, and which row is whose.
//
// Pure. A row (one pid and tid of a trace) is a stack of slices to every
// viewer: a slice that starts inside another must end inside it. What does not
// becomes a pair of async events, which have a track of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace shp {

// For the spans of one thread in order of start, longest first among equals.
class RowStack {
 public:
  // True when [start, end] may stand on the row with those that may before it.
  bool fits(int64_t start_ns, int64_t end_ns);

 private:
  // Perfetto drops slices nested deeper than 512.
  static constexpr size_t kMaxDepth = 500;

  std::vector<int64_t> ends_;
};

// Row numbers for one process of a trace: 1 … 2^32-1, since viewers take 0 for
// the pid and larger ones for 0; none twice; and, for rows beside the real
// ones, never the pid itself, which is the main thread's.
class TidChooser {
 public:
  static constexpr int64_t kAnyPid = 0;

  explicit TidChooser(int64_t pid) : pid_(pid) {}

  void take(int64_t tid) { used_.insert(tid); }

  // The first free one from `wanted` upwards.
  int64_t choose(int64_t wanted);

 private:
  static constexpr int64_t kLast = 0xffff'ffff;

  int64_t pid_;
  std::unordered_set<int64_t> used_;
};

// Where the synthetic rows of merged spans start: above every real Linux tid.
inline constexpr int64_t kRowBase = int64_t{1} << 30;

// Rounds to a multiple of `grain_ns`, half up; keeps the order of any two
// times.
int64_t to_grain(int64_t ns, int64_t grain_ns);

}  // namespace shp
