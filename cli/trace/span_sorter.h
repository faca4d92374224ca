// Brings spans into the order that rows are laid out in: by thread, then by
// start, longest first among equals, then as they came. Bounded memory: what
// does not fit goes to an unlinked file beside the output, in sorted runs that
// are merged at the end.
//
// One object belongs to one thread: add() all, then finish(), then next().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp {

struct SortedSpan {
  int64_t tid = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::string_view name;  // JSON texts; last until the next call
  std::string_view args;
};

class RunReader;

class SpanSorter {
 public:
  // `spill_directory` is where a file without a name is made when it must be.
  explicit SpanSorter(std::string spill_directory,
                      size_t memory_bytes = 16U << 20);
  ~SpanSorter();
  SpanSorter(SpanSorter&&) noexcept;

  Status add(const SortedSpan& span);
  Status finish();
  // False at the end.
  Result<bool> next(SortedSpan& span);

 private:
  struct Key {
    int64_t tid;
    int64_t start_ns;
    int64_t end_ns;
    uint64_t offset;  // of the texts in Batch::text
  };
  struct Run {
    uint64_t begin;
    uint64_t end;
  };
  // Spans that are kept in memory together.
  struct Batch {
    std::vector<Key> keys;
    std::string text;

    void reserve(size_t bytes);
    void sort();
    SortedSpan span_at(const Key& key) const;
    size_t used() const { return keys.size() * sizeof(Key) + text.size(); }
  };
  struct Spill;

  static bool before(const Key& a, const Key& b);
  Status start_spill();
  Status join_spill();
  Status open_runs();
  Result<bool> next_of_runs(SortedSpan& span);
  bool comes_first(size_t a, size_t b) const;
  void sink_first();

  std::string spill_directory_;
  size_t batch_bytes_;
  size_t memory_bytes_;
  Batch batch_;
  size_t next_key_ = 0;
  std::unique_ptr<Spill> spill_;  // none until the first run
  std::vector<std::unique_ptr<RunReader>> readers_;
  std::vector<size_t> heap_;  // indices into readers_, least span first
  bool primed_ = false;
};

}  // namespace shp
