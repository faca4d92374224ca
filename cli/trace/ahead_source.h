// Reads another source on a thread of its own, a little ahead of whoever looks
// at the bytes: inflating costs no time beside scanning.
//
// One source belongs to one thread; the source behind it is the background
// thread's until this one is gone. What settle() says arrives there late.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "cli/trace/byte_source.h"

namespace shp {

class AheadSource : public ByteSource {
 public:
  explicit AheadSource(ByteSource& behind);
  ~AheadSource() override;
  AheadSource(const AheadSource&) = delete;
  AheadSource& operator=(const AheadSource&) = delete;

  Result<size_t> read(char* into, size_t size) override;
  void settle(uint64_t offset) override { settled_ = offset; }

 private:
  static constexpr size_t kPieces = 4;
  static constexpr size_t kPieceBytes = 256U << 10;

  void run();

  ByteSource& behind_;
  std::atomic<uint64_t> settled_ = 0;
  std::array<std::string, kPieces> pieces_;
  std::array<size_t, kPieces> sizes_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t made_ = 0;   // pieces that were filled, all in all
  size_t taken_ = 0;  // of those, the ones that are used up
  bool stop_ = false;
  bool ended_ = false;  // nothing comes behind made_
  Error problem_;       // where it ended by one
  bool failed_ = false;
  size_t at_ = 0;  // in the piece that is being read; the reader's
  std::thread thread_;
};

}  // namespace shp
