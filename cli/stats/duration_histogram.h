// Durations counted in buckets that are 1/32 of their value wide, so that a
// percentile is right within 2 % whatever the range. Memory grows with the
// range that was seen: 32 counters for each doubling. For one thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace shp {

class DurationHistogram {
 public:
  void add(int64_t ns) {
    const size_t bucket = bucket_of(ns);
    if (counts_.empty()) {
      first_ = bucket;
    }
    if (bucket < first_) {
      counts_.insert(counts_.begin(), first_ - bucket, 0);
      first_ = bucket;
    }
    if (bucket - first_ >= counts_.size()) {
      counts_.resize(bucket - first_ + 1);
    }
    ++counts_[bucket - first_];
    ++count_;
    min_ = std::min(min_, ns);
    max_ = std::max(max_, ns);
  }

  uint64_t count() const { return count_; }
  int64_t min() const { return count_ == 0 ? 0 : min_; }
  int64_t max() const { return count_ == 0 ? 0 : max_; }

  // The smallest duration that `part` (0 to 1) of them do not exceed (nearest
  // rank), 0 when there are none.
  int64_t percentile(double part) const {
    const double rank = std::ceil(part * static_cast<double>(count_));
    uint64_t so_far = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      so_far += counts_[i];
      if (so_far > 0 && static_cast<double>(so_far) >= rank) {
        return std::clamp(middle_of(first_ + i), min_, max_);
      }
    }
    return max();
  }

 private:
  static constexpr int kBits = 5;  // 32 buckets a doubling
  static constexpr int64_t kExact = int64_t{1} << (kBits + 1);

  // Values below kExact have a bucket each; above, the highest kBits + 1 bits
  // count.
  static size_t bucket_of(int64_t ns) {
    if (ns < kExact) {
      return static_cast<size_t>(std::max<int64_t>(ns, 0));
    }
    const int width =
        static_cast<int>(std::bit_width(static_cast<uint64_t>(ns)));
    const int shift = width - kBits - 1;
    return static_cast<size_t>((int64_t{shift} << kBits) + (ns >> shift));
  }
  static int64_t middle_of(size_t bucket) {
    const auto number = static_cast<int64_t>(bucket);
    if (number < kExact) {
      return number;
    }
    const int64_t shift = (number >> kBits) - 1;
    const int64_t low = (number - (shift << kBits)) << shift;
    return low + (int64_t{1} << shift) / 2;
  }

  std::vector<uint64_t> counts_;
  size_t first_ = 0;  // bucket of counts_[0]
  uint64_t count_ = 0;
  int64_t min_ = std::numeric_limits<int64_t>::max();
  int64_t max_ = 0;
};

}  // namespace shp
