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

std::string label_of(const SessionRequest& request) {
  return "pid " + std::to_string(request.peer.pid) + ": " +
         request.texts[kFileNameText];
}

}  // namespace

SessionThread::SessionThread(Session& session)
    : session_(session),
      request_(session.request()),
      label_(label_of(request_)),
      keep_(session.store(), session.own_request()),
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

Status SessionThread::open_arena() {
  Result<ArenaView> arena =
      ArenaView::open(UniqueFd(dup_cloexec(request_.arena.get())));
  if (!arena) {
    return tl::unexpected(arena.error());
  }
  arena_.emplace(std::move(*arena));
  return check_request();
}

Status SessionThread::open() {
  if (Status done = become_client(request_.peer, request_.rights); !done) {
    return done;
  }
  if (!session_.wait_for_predecessor()) {
    return error("the previous session of this process does not end");
  }
  if (Status good = open_arena(); !good) {
    return good;
  }
  const auto committed =
      request_.resumed ? Drain::committed(*arena_, request_.fixed.generation)
                       : std::optional<Drain::Committed>{};
  const ClockKind kind = arena_->clock_kind();
  if (committed) {
    clock_.emplace(kind, committed->clock_shift_ns);
  } else {
    clock_.emplace(
        kind, request_.fixed.start, sample_clocks(kind), request_.daemon_start);
  }
  if (Status kept = keep_.begin(); !kept) {
    return kept;
  }
  if (Status made = open_file(committed ? committed->file_bytes : 0); !made) {
    return made;
  }
  keep_.keep_file(file_.fd());
  if (!file_.linked()) {
    open_drain(committed);
  }
  return {};
}

Status SessionThread::open_file(uint64_t committed_bytes) {
  const int directory = request_.directory.get();
  const std::string& name = request_.texts[kFileNameText];
  const mode_t mode = 0666 & ~request_.rights.umask;
  if (!request_.resumed) {
    return file_.create(directory, name, mode, first_metadata());
  }
  return file_.take_over(directory,
                         name,
                         std::move(session_.own_request().file),
                         committed_bytes,
                         first_metadata());
}

void SessionThread::open_drain(
    const std::optional<Drain::Committed>& committed) {
  drain_.emplace(*arena_,
                 writer_,
                 spool_,
                 Drain::Settings{request_.fixed.generation,
                                 request_.fixed.pid,
                                 request_.fixed.start,
                                 clock_->shift_ns()});
  if (committed) {
    if (request_.spool) {
      spool_.take_up(std::move(session_.own_request().spool),
                     committed->sequence);
    }
    drain_->take_up(*committed);
  } else {
    drain_->begin();
    write_clock_line(request_.fixed.start);
  }
  commit();
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
  nap_ns_ = kShortestNapNs;
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
  hear_stops();
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
    commit();
  }
  if (!going_well_) {
    going_well_ = true;
    keep_.note_going_well();
  }
  note_facts();
}

// Nothing is committed that is not with the kernel, where it outlives us.
void SessionThread::commit() {
  if (writer_.flush() && spool_.flush()) {
    keep_.keep_spool(spool_.fd());
    drain_->commit(file_.size());
    spool_.committed(drain_->sequence());
  }
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
  const auto used = static_cast<int32_t>(
      arena_->header().blocks_used.load(std::memory_order_relaxed));
  facts.blocks_used.store(static_cast<uint64_t>(std::max(used, 0)),
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
  keep_.end();
  session_.finish(std::move(result));
}

void SessionThread::run() {
  const Status opened = open();
  if (!opened) {
    return refuse(opened.error());
  }
  if (file_.linked()) {
    return publish_again();
  }
  if (!request_.answered) {
    session_.answer_start(Reply{}, {});
    keep_.note_answered();
  }
  spdlog::info("{}: {} into {}",
               label_,
               request_.resumed ? "goes on recording" : "recording",
               request_.texts[kDirectoryText]);
  record();
}

void run_session(Session& session) {
  SessionThread(session).run();
}

}  // namespace shp
