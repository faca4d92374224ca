// Copies a large file while it is still being scanned, so that scanning costs
// no time beside the copy. The scan tells when the file looks like a trace; the
// copy does not wait for it any further, and what turns out to change is cut
// off again.
//
// allow() belongs to the thread that scans, finish() to whoever comes after it.
// The copy itself runs on a thread of its own; the output is made when it
// begins, and not at all for small files.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "common/base/result.h"

namespace shp {

class PrefixCopy {
 public:
  // `open_output` gives the descriptor to write to, at its start.
  PrefixCopy(int in, std::function<Result<int>()> open_output);
  ~PrefixCopy();
  PrefixCopy(const PrefixCopy&) = delete;
  PrefixCopy& operator=(const PrefixCopy&) = delete;

  // The file's first `offset` bytes belong to a trace and stay as they are.
  void allow(uint64_t offset);

  // Waits until the output holds the first `bytes` of the file and nothing
  // else, and returns how many it has; a failure only makes it less.
  Result<uint64_t> finish(uint64_t bytes);

 private:
  // A file must have this much before anything is copied ahead.
  static constexpr uint64_t kFirstBytes = 32U << 20;
  static constexpr uint64_t kStepBytes = 8U << 20;

  void run();

  int in_;
  int out_ = -1;
  std::function<Result<int>()> open_output_;
  bool begun_ = false;
  std::atomic<uint64_t> limit_ = 0;
  uint64_t done_ = 0;  // the copying thread's
  std::thread thread_;
};

}  // namespace shp
