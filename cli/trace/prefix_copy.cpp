#include "cli/trace/prefix_copy.h"

#include <fcntl.h>

#include "cli/trace/gz_splice.h"

namespace shp {

PrefixCopy::PrefixCopy(int in, std::function<Result<int>()> open_output)
    : in_(in), open_output_(std::move(open_output)) {}

PrefixCopy::~PrefixCopy() {
  finish();
}

void PrefixCopy::allow(uint64_t offset) {
  if (offset < allowed_here_ + kStepBytes || offset < kFirstBytes || failed_) {
    return;
  }
  if (!thread_.joinable()) {
    const Result<int> out = open_output_();
    if (!out) {
      failed_ = true;
      return;
    }
    thread_ = std::thread([this, fd = *out] { run(fd); });
  }
  allowed_here_ = offset;
  const std::lock_guard<std::mutex> lock(mutex_);
  allowed_ = offset;
  changed_.notify_one();
}

// Where the next step ends; 0 when there is none any more.
uint64_t PrefixCopy::next_step() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || allowed_ > done_; });
  return allowed_ > done_ && !stop_ ? std::min(allowed_, done_ + kStepBytes)
                                    : 0;
}

void PrefixCopy::run(int out) {
  while (const uint64_t end = next_step()) {
    if (!copy_bytes(in_, out, done_, end)) {
      return;
    }
    // The disk starts on it now, so that little is left for the last fsync.
    sync_file_range(out,
                    static_cast<off_t>(done_),
                    static_cast<off_t>(end - done_),
                    SYNC_FILE_RANGE_WRITE);
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = end;
  }
}

uint64_t PrefixCopy::finish() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }
  return done_;
}

}  // namespace shp
