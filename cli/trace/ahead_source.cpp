#include "cli/trace/ahead_source.h"

#include <algorithm>
#include <cstring>

namespace shp {

AheadSource::AheadSource(ByteSource& behind)
    : behind_(behind), thread_([this] { run(); }) {}

AheadSource::~AheadSource() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void AheadSource::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || made_ - taken_ < kPieces; });
    if (stop_) {
      return;
    }
    const size_t slot = made_ % kPieces;
    lock.unlock();
    behind_.settle(settled_);
    std::string& piece = pieces_[slot];
    piece.resize(kPieceBytes);
    const Result<size_t> got = behind_.read(piece.data(), kPieceBytes);
    lock.lock();
    sizes_[slot] = got.value_or(0);
    ended_ = sizes_[slot] == 0;
    if (!got) {
      problem_ = got.error();
      failed_ = true;
    }
    made_ += ended_ ? 0 : 1;
    changed_.notify_all();
    if (ended_) {
      return;
    }
  }
}

Result<size_t> AheadSource::read(char* into, size_t size) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || made_ > taken_; });
  if (made_ == taken_) {
    return failed_ ? Result<size_t>(tl::unexpected<Error>(problem_))
                   : Result<size_t>(0);
  }
  const size_t slot = taken_ % kPieces;
  lock.unlock();
  const size_t some = std::min(size, sizes_[slot] - at_);
  std::memcpy(into, pieces_[slot].data() + at_, some);
  at_ += some;
  if (at_ == sizes_[slot]) {
    at_ = 0;
    lock.lock();
    ++taken_;
    changed_.notify_all();
  }
  return some;
}

}  // namespace shp
