#include "cli/trace/background_sink.h"

#include <utility>

namespace shp {

BackgroundSink::~BackgroundSink() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void BackgroundSink::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !given_.empty(); });
    if (given_.empty()) {
      return;
    }
    lock.unlock();
    const Status written = behind_.write(given_);
    lock.lock();
    given_.clear();
    state_ = state_ ? written : state_;
    changed_.notify_all();
  }
}

Status BackgroundSink::hand_over() {
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return given_.empty(); });
  std::swap(piece_, given_);
  changed_.notify_all();
  return state_;
}

Status BackgroundSink::write(std::string_view text) {
  piece_ += text;
  return piece_.size() < kPieceBytes ? Status{} : hand_over();
}

Status BackgroundSink::finish() {
  if (!thread_.joinable()) {
    const Status written = behind_.write(piece_);
    piece_.clear();
    return written;
  }
  const Status handed = piece_.empty() ? Status{} : hand_over();
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return given_.empty(); });
  return handed ? state_ : handed;
}

}  // namespace shp
