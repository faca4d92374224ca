// The end of a session: what is left is drained, counted and published.
#include <spdlog/spdlog.h>

#include "daemon/futex.h"
#include "daemon/reply.h"
#include "daemon/session_thread.h"

namespace shp {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStuckNapNs = 250 * kMs;
constexpr int64_t kShutdownPatienceNs = 2000 * kMs;
constexpr uint64_t kTickSlack = 100'000;

Reply reply_of(const HostFileMetadata& metadata) {
  Reply reply{};
  reply.written_spans = metadata.written_spans;
  reply.dropped_spans = metadata.dropped.sum();
  reply.bad_args = metadata.bad_args;
  return reply;
}

}  // namespace

// ---- finishing
// ------------------------------------------------------------------

void SessionThread::finish(EndReason reason) {
  const ClockSample stop = stop_sample(reason);
  drain_->begin_finish(stop);
  drain_->see_tails();
  drain_->round(stop);
  drain_->end_finish();
  write_last_lines(reason, stop);
  // No commit before the file has its name: see DURABILITY in arena_abi.h.
  static_cast<void>(writer_.flush());
  const HostFileMetadata metadata = last_metadata(reason, stop);
  if (writer_.failed()) {
    return conclude(error("given up, what was written is in " +
                          request_.texts[kFileNameText] + ".pending"),
                    metadata);
  }
  const std::vector<OpenSpanEntry> open_spans =
      process_is_gone(reason) ? drain_->open_spans()
                              : std::vector<OpenSpanEntry>{};
  keep_.note_result(reply_of(metadata));
  const Status published = file_.publish(metadata, open_spans);
  drain_->commit(file_.size());
  conclude(published, metadata);
}

// The shpd that gave the file its name died before it could say so.
void SessionThread::publish_again() {
  SessionResult result;
  result.reply = request_.result.value_or(Reply{});
  if (const Status done = file_.publish_again(); !done) {
    spdlog::error("{}: {}", label_, done.error().message);
  }
  keep_.end();
  session_.finish(std::move(result));
}

// The client's own, unless it cannot be: a span that ended after it is in the
// file already (its thread was on its way out of span_end), or it is made up.
ClockSample SessionThread::stop_sample(EndReason reason) {
  const ClockSample ours = clock_->now();
  if (reason != EndReason::kStop) {
    return ours;
  }
  const ClockSample& theirs = *stop_;
  const int64_t off = theirs.monotonic_ns - drain_->to_ns(theirs.ticks);
  const bool fits =
      theirs.ticks >= request_.fixed.start.ticks &&
      theirs.ticks <= ours.ticks + kTickSlack &&
      theirs.ticks + theirs.tick_window >= drain_->latest_end_ticks() &&
      theirs.monotonic_ns >= request_.fixed.start.monotonic_ns && off < kMs &&
      off > -kMs;
  return fits ? theirs : ours;
}

void SessionThread::write_last_lines(EndReason reason,
                                     const ClockSample& stop) {
  if (process_is_gone(reason)) {
    for (const OpenSpanEntry& span : drain_->open_spans()) {
      writer_.open_span(span.tid, span.name_text, span.start_ns);
    }
  }
  drain_->write_threads();
  write_clock_line(stop);
}

HostFileMetadata SessionThread::last_metadata(EndReason reason,
                                              const ClockSample& stop) {
  HostFileMetadata metadata = first_metadata();
  metadata.stop = stop;
  metadata.written_spans = writer_.spans();
  metadata.written_instants = writer_.instants();
  metadata.written_counters = writer_.counters();
  metadata.dropped = drain_->losses();
  metadata.dropped_marks = drain_->dropped_marks();
  metadata.bad_args = drain_->bad_args();
  metadata.names_lost = drain_->names_lost();
  metadata.broken_rings = drain_->broken_rings();
  metadata.complete = is_orderly(reason);
  metadata.end_reason = name_of(reason);
  metadata.exit_code = last_news_.exit_status.code;
  metadata.exit_signal = last_news_.exit_status.signal;
  return metadata;
}

void SessionThread::conclude(const Status& published,
                             const HostFileMetadata& metadata) {
  SessionResult result;
  result.reply = reply_of(metadata);
  if (!published) {
    const Error& why = published.error();
    result.reply.code = static_cast<uint32_t>(
        why.errno_value == EEXIST ? ReplyCode::kFileExists : ReplyCode::kIo);
    result.reply.errno_value = why.errno_value;
    result.text = why.message;
    spdlog::error("{}: not published: {}", label_, why.message);
  } else {
    spdlog::info("{}: {} spans, {} lost, end: {}",
                 label_,
                 metadata.written_spans,
                 metadata.dropped.sum(),
                 metadata.end_reason);
  }
  if (drain_->broken_rings() > 0) {
    spdlog::warn("{}: {} rings broke a rule and were not read on",
                 label_,
                 drain_->broken_rings());
  }
  answer_stops(result.reply, result.text);
  keep_.end();
  session_.finish(std::move(result));
}

void SessionThread::hear_stops() {
  for (StopOrder& order : session_.take_stop_orders()) {
    stop_ = stop_.value_or(order.stop);
    stop_connections_.push_back(std::move(order.connection));
  }
}

void SessionThread::answer_stops(const Reply& reply, std::string_view text) {
  for (const UniqueFd& connection : stop_connections_) {
    send_reply(connection.get(), reply, text);
  }
  stop_connections_.clear();
}

// ---- when the file cannot be written
// ---------------------------------------------

bool SessionThread::wait_while_stuck(const Error& why) {
  const int64_t now = monotonic_ns();
  if (arena_) {
    arena_->header().heartbeat_ns.store(now, std::memory_order_relaxed);
  }
  const uint32_t heard = session_.said();
  hear_stops();
  Reply reply{};
  reply.code = static_cast<uint32_t>(ReplyCode::kIo);
  reply.errno_value = why.errno_value;
  reply.written_spans = writer_.spans();
  answer_stops(reply, why.message);

  const SessionNews news = session_.news();
  if (news.shutdown && gives_up_ns_ == 0) {
    gives_up_ns_ = now + kShutdownPatienceNs;
  }
  if (news.superseded || (gives_up_ns_ != 0 && now >= gives_up_ns_)) {
    return false;
  }
  if (session_.said() == heard) {
    std::atomic<uint32_t>& word = arena_->header().wake;
    futex_wait(&word, word.load(std::memory_order_seq_cst), kStuckNapNs);
  }
  return true;
}

}  // namespace shp
