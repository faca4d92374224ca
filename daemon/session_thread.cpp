#include "daemon/session_thread.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "daemon/drain.h"
#include "daemon/end_reason.h"
#include "daemon/futex.h"
#include "daemon/reply.h"
#include "daemon/session.h"
#include "daemon/session_clock.h"
#include "daemon/session_file.h"

namespace shp {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;
constexpr int64_t kShortestNapNs = 5 * kMs;
constexpr int64_t kBusyNapNs = 50 * kMs;
constexpr int64_t kIdleNapNs = 250 * kMs;
constexpr size_t kManyBytes = 1U << 20;  // 32,768 spans
// A client may wake us as often as it likes; it is served at most this often.
constexpr int64_t kLeastRoundNs = 1 * kMs;
constexpr int64_t kShutdownPatienceNs = 2 * kSecond;
constexpr uint64_t kTickSlack = 100'000;

class SessionThread {
 public:
  explicit SessionThread(Session& session);
  void run();

 private:
  Status open();
  Status check_request() const;
  HostFileMetadata first_metadata() const;
  void record();
  EndReason why_end();
  EndReason why_gone(const SessionNews& news);
  bool was_replaced_by_exec();
  void drain_once();
  void write_clock_line(const ClockSample& sample);
  void nap();
  void note_facts();

  void finish(EndReason reason);
  ClockSample stop_sample(EndReason reason);
  void write_last_lines(EndReason reason, const ClockSample& stop);
  HostFileMetadata last_metadata(EndReason reason, const ClockSample& stop);
  void conclude(const Status& published, const HostFileMetadata& metadata);

  bool wait_while_stuck(const Error& why);
  void answer_stop(const Reply& reply, std::string_view text);
  void refuse(const Error& why);

  Session& session_;
  const SessionRequest& request_;
  std::string label_;
  std::optional<ArenaView> arena_;
  std::optional<SessionClock> clock_;
  SessionFile file_;
  LineWriter writer_;
  DeferredSpool spool_;
  std::optional<Drain> drain_;

  uint32_t heard_ = 0;      // Session::said() as of the last look
  uint32_t wake_seen_ = 0;  // ArenaHeader::wake before the last round
  int64_t nap_ns_ = kShortestNapNs;
  int64_t round_began_ns_ = 0;
  int64_t next_clock_line_ns_ = 0;
  int64_t began_ns_ = 0;
  int64_t next_facts_ns_ = 0;
  bool looked_for_exec_ = false;
  SessionNews last_news_;
  std::optional<ClockSample> stop_;  // of a StopRequest, once there was one
  UniqueFd stop_connection_;
  int64_t gives_up_ns_ = 0;
};

std::string label_of(const SessionRequest& request) {
  return "pid " + std::to_string(request.peer.pid) + ": " +
         request.texts[kFileNameText];
}

SessionThread::SessionThread(Session& session)
    : session_(session),
      request_(session.request()),
      label_(label_of(request_)),
      file_(label_, [this](const Error& why) { return wait_while_stuck(why); }),
      writer_(file_),
      spool_(request_.directory.get()) {}

// ---- opening
// --------------------------------------------------------------------

Status SessionThread::check_request() const {
  if (request_.texts[kSessionIdText].size() > kMaxSessionIdBytes) {
    return error("session id is longer than " +
                 std::to_string(kMaxSessionIdBytes) + " bytes");
  }
  if (std::memcmp(arena_->token(),
                  request_.fixed.token,
                  sizeof(request_.fixed.token)) != 0) {
    return error("arena is not the one that the request names");
  }
  return {};
}

Status SessionThread::open() {
  if (Status done = become_client(request_.peer, request_.rights); !done) {
    return done;
  }
  if (!session_.wait_for_predecessor()) {
    return error("the previous session of this process does not end");
  }
  Result<ArenaView> arena =
      ArenaView::open(UniqueFd(dup_cloexec(request_.arena.get())));
  if (!arena) {
    return tl::unexpected(arena.error());
  }
  arena_.emplace(std::move(*arena));
  if (Status good = check_request(); !good) {
    return good;
  }
  const ClockKind kind = arena_->clock_kind();
  clock_.emplace(
      kind, request_.fixed.start, sample_clocks(kind), request_.daemon_start);
  if (Status made = file_.create(request_.directory.get(),
                                 request_.texts[kFileNameText],
                                 0666 & ~request_.rights.umask,
                                 first_metadata());
      !made) {
    return made;
  }
  drain_.emplace(
      *arena_,
      writer_,
      spool_,
      Drain::Settings{
          request_.fixed.generation, request_.fixed.pid, request_.fixed.start});
  write_clock_line(request_.fixed.start);
  return {};
}

HostFileMetadata SessionThread::first_metadata() const {
  HostFileMetadata metadata;
  const StartRequest& fixed = request_.fixed;
  metadata.session_id = request_.texts[kSessionIdText];
  metadata.pid = fixed.pid;
  metadata.hostname =
      request_.texts[kHostnameText].substr(0, kMaxHostnameBytes);
  metadata.start = fixed.start;
  metadata.stop = fixed.start;
  metadata.clock_kind = arena_->clock_kind();
  metadata.end_reason = "";
  metadata.argv = request_.texts[kArgvText];
  metadata.ppid = fixed.ppid;
  metadata.host_pid = request_.peer.pid;
  metadata.uid = request_.peer.uid;
  metadata.pid_namespace = fixed.pid_namespace;
  metadata.boot_id = boot_id();
  return metadata;
}

// ---- recording
// ------------------------------------------------------------------

void SessionThread::record() {
  began_ns_ = monotonic_ns();
  session_.facts().state.store("recording", std::memory_order_relaxed);
  session_.set_wake_word(&arena_->header().wake);
  EndReason reason;
  while ((reason = why_end()) == EndReason::kNone && !writer_.failed()) {
    drain_once();
    nap();
  }
  session_.facts().state.store("finishing", std::memory_order_relaxed);
  finish(reason);
}

EndReason SessionThread::why_end() {
  heard_ = session_.said();
  if (std::optional<StopOrder> order = session_.take_stop_order()) {
    stop_connection_ = std::move(order->connection);
    stop_ = stop_.value_or(order->stop);
  }
  if (stop_) {
    return EndReason::kStop;
  }
  last_news_ = session_.news();
  return why_gone(last_news_);
}

EndReason SessionThread::why_gone(const SessionNews& news) {
  if (news.exited) {
    const bool killed =
        news.exit_status.known
            ? news.exit_status.signal >= 0
            : arena_->header().exiting.load(std::memory_order_relaxed) == 0;
    return killed ? EndReason::kKilled : EndReason::kExit;
  }
  if (news.superseded) {
    return EndReason::kDaemonStopped;  // its client has given it up
  }
  if (news.replaced || (news.hung_up && was_replaced_by_exec())) {
    return EndReason::kExec;
  }
  return news.shutdown ? EndReason::kDaemonStopped : EndReason::kNone;
}

// The client's end of the Start connection is close-on-exec. A program that
// merely closed all its descriptors still has the arena mapped.
bool SessionThread::was_replaced_by_exec() {
  if (looked_for_exec_) {
    return false;
  }
  looked_for_exec_ = true;
  struct stat info;
  return fstat(arena_->fd(), &info) == 0 &&
         has_mapped(request_.peer.pid, info.st_dev, info.st_ino) ==
             Mapped::kNo &&
         request_.peer.pidfd && !has_exited(request_.peer.pidfd.get());
}

void SessionThread::drain_once() {
  ArenaHeader& header = arena_->header();
  round_began_ns_ = monotonic_ns();
  header.heartbeat_ns.store(round_began_ns_, std::memory_order_relaxed);
  wake_seen_ = header.wake.load(std::memory_order_seq_cst);
  drain_->see_tails();
  const bool clock_due = round_began_ns_ >= next_clock_line_ns_;
  if (drain_->anything_seen() || clock_due) {
    const ClockSample now = clock_->now();
    drain_->round(now);
    if (clock_due) {
      write_clock_line(now);
    }
    if (writer_.flush()) {
      drain_->commit(file_.size());
    }
  }
  note_facts();
}

// One a second for the first hour, then one in ten, then one a minute.
void SessionThread::write_clock_line(const ClockSample& sample) {
  const int64_t now = monotonic_ns();
  const int64_t age = began_ns_ == 0 ? 0 : now - began_ns_;
  next_clock_line_ns_ = now + (age < 3600 * kSecond    ? kSecond
                               : age < 36000 * kSecond ? 10 * kSecond
                                                       : 60 * kSecond);
  writer_.clock(sample);
}

void SessionThread::note_facts() {
  SessionFacts& facts = session_.facts();
  facts.written_spans.store(writer_.spans(), std::memory_order_relaxed);
  facts.file_bytes.store(file_.size(), std::memory_order_relaxed);
  facts.blocks_used.store(
      arena_->header().blocks_used.load(std::memory_order_relaxed),
      std::memory_order_relaxed);
  if (round_began_ns_ >= next_facts_ns_) {
    next_facts_ns_ = round_began_ns_ + kSecond;
    facts.dropped_spans.store(drain_->losses().sum(),
                              std::memory_order_relaxed);
  }
}

void SessionThread::nap() {
  if (drain_->anything_seen() && drain_->has_more()) {
    nap_ns_ = kShortestNapNs;
    return;
  }
  const size_t bytes = drain_->anything_seen() ? drain_->last_bytes() : 0;
  if (bytes >= kManyBytes) {
    nap_ns_ = std::max(nap_ns_ / 2, kShortestNapNs);
  } else {
    nap_ns_ =
        std::min(nap_ns_ + nap_ns_ / 2, bytes > 0 ? kBusyNapNs : kIdleNapNs);
  }
  ArenaHeader& header = arena_->header();
  header.daemon_sleeps.store(1, std::memory_order_seq_cst);
  // wake_seen_ was read before the rings were: a client that has called since
  // then makes the kernel return at once.
  if (session_.said() == heard_) {
    futex_wait(&header.wake, wake_seen_, nap_ns_);
  }
  header.daemon_sleeps.store(0, std::memory_order_relaxed);
  const int64_t early = kLeastRoundNs - (monotonic_ns() - round_began_ns_);
  if (early > 0 && session_.said() == heard_) {
    const timespec rest{0, early};
    nanosleep(&rest, nullptr);
  }
}

// ---- finishing
// ------------------------------------------------------------------

void SessionThread::finish(EndReason reason) {
  const ClockSample stop = stop_sample(reason);
  drain_->begin_finish(stop);
  drain_->see_tails();
  drain_->round(stop);
  drain_->end_finish();
  write_last_lines(reason, stop);
  if (writer_.flush()) {
    drain_->commit(file_.size());
  }
  const HostFileMetadata metadata = last_metadata(reason, stop);
  if (writer_.failed()) {
    return conclude(error("given up, what was written is in " +
                          request_.texts[kFileNameText] + ".pending"),
                    metadata);
  }
  const std::vector<OpenSpanEntry> open_spans =
      process_is_gone(reason) ? drain_->open_spans()
                              : std::vector<OpenSpanEntry>{};
  conclude(file_.publish(metadata, open_spans), metadata);
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
  metadata.bad_args = drain_->bad_args();
  metadata.dropped_marks = drain_->dropped_marks();
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
  result.reply.written_spans = metadata.written_spans;
  result.reply.dropped_spans = metadata.dropped.sum();
  result.reply.bad_args = metadata.bad_args;
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
  if (std::optional<StopOrder> order = session_.take_stop_order()) {
    stop_connection_ = std::move(order->connection);
  }
  answer_stop(result.reply, result.text);
  session_.finish(std::move(result));
}

void SessionThread::answer_stop(const Reply& reply, std::string_view text) {
  if (stop_connection_) {
    send_reply(stop_connection_.get(), reply, text);
    stop_connection_.reset();
  }
}

// ---- when the file cannot be written
// ---------------------------------------------

bool SessionThread::wait_while_stuck(const Error& why) {
  const int64_t now = monotonic_ns();
  if (arena_) {
    arena_->header().heartbeat_ns.store(now, std::memory_order_relaxed);
  }
  const uint32_t heard = session_.said();
  if (std::optional<StopOrder> order = session_.take_stop_order()) {
    stop_connection_ = std::move(order->connection);
    stop_ = stop_.value_or(order->stop);
  }
  Reply reply{};
  reply.code = static_cast<uint32_t>(ReplyCode::kIo);
  reply.errno_value = why.errno_value;
  reply.written_spans = writer_.spans();
  answer_stop(reply, why.message);

  const SessionNews news = session_.news();
  if (news.shutdown && gives_up_ns_ == 0) {
    gives_up_ns_ = now + kShutdownPatienceNs;
  }
  if (news.superseded || (gives_up_ns_ != 0 && now >= gives_up_ns_)) {
    return false;
  }
  if (session_.said() == heard) {
    std::atomic<uint32_t>& word = arena_->header().wake;
    futex_wait(&word, word.load(std::memory_order_seq_cst), kIdleNapNs);
  }
  return true;
}

void SessionThread::refuse(const Error& why) {
  SessionResult result;
  result.reply.code =
      static_cast<uint32_t>(why.errno_value == EPROTO   ? ReplyCode::kVersion
                            : why.errno_value == EEXIST ? ReplyCode::kFileExists
                            : why.errno_value != 0      ? ReplyCode::kIo
                                                        : ReplyCode::kRefused);
  result.reply.errno_value = why.errno_value;
  result.text = why.message;
  spdlog::info("{}: refused: {}", label_, why.message);
  session_.answer_start(result.reply, result.text);
  session_.finish(std::move(result));
}

void SessionThread::run() {
  const Status opened = open();
  if (!opened) {
    return refuse(opened.error());
  }
  session_.answer_start(Reply{}, {});
  spdlog::info("{}: recording into {}", label_, request_.texts[kDirectoryText]);
  record();
}

}  // namespace

void run_session(Session& session) {
  SessionThread(session).run();
}

}  // namespace shp
