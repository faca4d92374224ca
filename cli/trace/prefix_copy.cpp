#include "cli/trace/prefix_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/trace/gz_splice.h"

namespace shp {

PrefixCopy::PrefixCopy(int in, std::function<Result<int>()> open_output)
    : in_(in), open_output_(std::move(open_output)) {}

PrefixCopy::~PrefixCopy() {
  limit_ = 0;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void PrefixCopy::allow(uint64_t offset) {
  if (begun_ || offset < kFirstBytes) {
    return;
  }
  begun_ = true;
  struct stat status;
  const Result<int> out = open_output_();
  if (!out || fstat(in_, &status) != 0) {
    return;
  }
  out_ = *out;
  limit_ = static_cast<uint64_t>(status.st_size);
  thread_ = std::thread([this] { run(); });
}

void PrefixCopy::run() {
  while (true) {
    const uint64_t end = std::min<uint64_t>(limit_, done_ + kStepBytes);
    if (end <= done_ || !copy_bytes(in_, out_, done_, end)) {
      return;
    }
    // The disk starts on it now, so that little is left for the last fsync.
    sync_file_range(out_,
                    static_cast<off_t>(done_),
                    static_cast<off_t>(end - done_),
                    SYNC_FILE_RANGE_WRITE);
    done_ = end;
  }
}

Result<uint64_t> PrefixCopy::finish(uint64_t bytes) {
  if (!thread_.joinable()) {
    return uint64_t{0};
  }
  limit_ = bytes;
  thread_.join();
  // A failed step may have left some behind what is known to be there.
  const uint64_t kept = std::min(done_, bytes);
  const auto size = static_cast<off_t>(kept);
  if (ftruncate(out_, size) != 0 || lseek(out_, size, SEEK_SET) != size) {
    return errno_error("writing", errno);
  }
  return kept;
}

}  // namespace shp
