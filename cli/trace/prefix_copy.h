// Copies the part of a large plain trace that will not change while the rest is
// still being scanned, so that scanning costs no time beside the copy.
//
// Belongs to the thread that scans: allow() is called with every offset up to
// which the file stays as it is, finish() before somebody else writes. The copy
// itself runs on a thread of its own; the output is made when the first bytes
// are due, and not at all for small files.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
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

  void allow(uint64_t offset);

  // Waits for the copy and returns how much of the file is in the output now; a
  // failure only makes it less.
  uint64_t finish();

 private:
  // A file must have this much before anything is copied ahead.
  static constexpr uint64_t kFirstBytes = 32U << 20;
  static constexpr uint64_t kStepBytes = 8U << 20;

  void run(int out);
  uint64_t next_step();

  int in_;
  std::function<Result<int>()> open_output_;
  uint64_t allowed_here_ = 0;  // the scanning thread's own copy
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t allowed_ = 0;
  uint64_t done_ = 0;
  bool stop_ = false;
  bool failed_ = false;
  std::thread thread_;
};

}  // namespace shp
