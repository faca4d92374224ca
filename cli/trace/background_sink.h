// Hands text to another sink on a thread of its own, so that what makes the
// text does not wait for whoever compresses or writes it.
//
// One sink belongs to one thread; the sink behind it is the background thread's
// until finish(). Memory: two pieces.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "cli/trace/text_sink.h"

namespace shp {

class BackgroundSink : public TextSink {
 public:
  explicit BackgroundSink(TextSink& behind) : behind_(behind) {}
  ~BackgroundSink() override;
  BackgroundSink(const BackgroundSink&) = delete;
  BackgroundSink& operator=(const BackgroundSink&) = delete;

  // An Error may be of text that was given before.
  Status write(std::string_view text) override;
  // Waits until the sink behind has everything, and does not finish() it.
  Status finish() override;

 private:
  static constexpr size_t kPieceBytes = 1U << 20;

  Status hand_over();
  void run();

  TextSink& behind_;
  std::string piece_;  // being filled
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string given_;  // the thread's while it is not empty
  bool stop_ = false;
  Status state_;
  std::thread thread_;
};

}  // namespace shp
