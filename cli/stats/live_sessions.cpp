#include "cli/stats/live_sessions.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/jsonl/span_format.h"

namespace shp {
namespace {

// The pending file, where its process sees it (it may be in a container), else
// where the same path leads from here.
Result<LiveFile> open_pending(const SessionStatus& status,
                              LiveFile::From from) {
  const std::string path =
      status.directory + "/" + status.file + std::string(kPendingSuffix);
  Result<LiveFile> file = LiveFile::open(
      "/proc/" + std::to_string(status.pid) + "/root" + path, from);
  return file ? std::move(file) : LiveFile::open(path, from);
}

}  // namespace

void LiveSessions::meet(const SessionStatus& status, bool at_first) {
  const std::string key = std::to_string(status.pid) + " " + status.session_id;
  const auto [at, is_new] = followed_.try_emplace(key);
  Followed& followed = at->second;
  const uint64_t dropped_before =
      is_new && at_first ? status.dropped : followed.session.status.dropped;
  followed.session.status = status;
  followed.session.ended = false;
  followed.session.new_dropped =
      status.dropped - std::min(status.dropped, dropped_before);
  if (!is_new) {
    return;
  }
  followed.number = ++met_;
  Result<LiveFile> file = open_pending(
      status, at_first ? LiveFile::From::kEnd : LiveFile::From::kStart);
  if (file) {
    followed.file = std::move(*file);
  } else {
    followed.session.problem = file.error().message;
  }
}

void LiveSessions::read(Followed& followed) {
  if (!followed.file) {
    return;
  }
  const Status state = followed.file->read([&](const HostSpan& item) {
    if (item.item != HostItem::kSpan) {
      marks_.take(item);
      return;
    }
    spans_.take(followed.number, item);
    ++followed.session.new_spans;
    last_end_ns_ = std::max(last_end_ns_, item.start_ns + item.duration_ns);
  });
  if (!state) {
    followed.session.problem = state.error().message;
    followed.file.reset();
  }
}

// Those that had their last look.
void LiveSessions::forget_ended() {
  std::erase_if(followed_, [&](const auto& entry) {
    if (entry.second.session.ended) {
      spans_.forget_process(entry.second.number);
    }
    return entry.second.session.ended;
  });
}

void LiveSessions::look(const std::vector<SessionStatus>& recording) {
  const bool at_first = looked_ns_ == 0;
  const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  seconds_ = static_cast<double>(now_ns - looked_ns_) / 1e9;
  forget_ended();
  for (auto& [key, followed] : followed_) {
    followed.session.ended = true;  // unless a daemon still names it
    followed.session.new_spans = 0;
  }
  for (const SessionStatus& session : recording) {
    meet(session, at_first);
  }
  spans_.clear_numbers();
  marks_.clear_numbers();
  shown_.clear();
  const int64_t from_ns = last_end_ns_ > 0 ? last_end_ns_ : looked_ns_;
  for (auto& [key, followed] : followed_) {
    spans_.set_window(followed.number, from_ns, now_ns - looked_ns_);
    read(followed);
    shown_.push_back(followed.session);
  }
  looked_ns_ = now_ns;
}

}  // namespace shp
