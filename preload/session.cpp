#include "preload/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/base/clock.h"
#include "preload/daemon_link.h"
#include "preload/fork_wipe.h"
#include "preload/futex.h"
#include "preload/log.h"
#include "preload/output_directory.h"
#include "preload/process_arena.h"
#include "preload/process_facts.h"
#include "preload/recorder.h"
#include "preload/session_requests.h"

namespace shp::recorder {
namespace {

constexpr int kStartTries = 5;

// What a session needs until it is published. A forked child inherits the
// bytes, but g_wiped.session_active is false there.
struct Session {
  std::string path;
  std::string directory;
  int pid = 0;
  uint32_t generation = 0;
  bool by_itself = false;  // from SHP_OUTPUT_DIR, not from a start()
  bool frozen = false;
  bool unpublished = false;  // its stop() failed, and may be called again
  std::string start_message;
  ClockSample stop;
  UniqueFd life_line;  // the Start connection, never spoken on again
  ino_t life_line_inode = 0;
};

// Made by the first start, under the session lock, and never freed: threads may
// record until the very end, after static destructors. No guarded static: a
// fork while another thread is in its first start would leave the guard held.
constinit Session* g_session = nullptr;

Session& session() {
  return *g_session;
}

// A child's parent's may have been copied in the middle of a change.
Session& session_to_start() {
  if (g_session == nullptr || g_session->pid != getpid()) {
    g_session = new Session();
  }
  return *g_session;
}

ino_t inode_of(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

// Closes the life line unless the program closed it and the number is in use
// for something of its own.
void close_life_line(Session& now) {
  const int fd = now.life_line.release();
  if (now.life_line_inode != 0 && inode_of(fd) == now.life_line_inode) {
    close(fd);
  }
}

tl::unexpected<Error> misuse(const char* message, int errno_value) {
  return tl::unexpected<Error>(Error{message, errno_value});
}

std::string random_hex() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    const int64_t now[2] = {monotonic_ns(), clock_ns(CLOCK_REALTIME)};
    std::memcpy(bytes, now, sizeof(bytes));
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

struct Opening {
  StartOptions options;
  std::string file;
  std::string directory;
  UniqueFd directory_fd;
};

void name_session(Opening& opening, const StartOptions& options) {
  const std::string stem =
      options.file_prefix + "_" + std::to_string(getpid()) + "_" + random_hex();
  opening.file = stem + ".jsonl";
  opening.options.session_id =
      options.session_id.empty() ? stem : options.session_id;
}

// Under the session lock.
Result<std::string> start_locked(const StartOptions& options, bool by_itself) {
  Opening opening{options, {}, {}, {}};
  Result<UniqueFd> directory =
      open_directory(options.directory, opening.directory);
  if (!directory) {
    return tl::unexpected<Error>(directory.error());
  }
  opening.directory_fd = std::move(*directory);
  const Status arena = ensure_arena();
  if (!arena) {
    return tl::unexpected<Error>(arena.error());
  }
  static uint32_t generations = 0;  // goes on counting in a forked child
  uint32_t generation = 0;
  Result<std::string> message = std::string();
  Result<UniqueFd> socket = UniqueFd();
  // A daemon that dies before it answers leaves it open whether it began: the
  // next one is asked for another session, under another name.
  for (int tries = 0; tries < kStartTries; ++tries) {
    name_session(opening, options);
    generation = ++generations;
    message = start_message(
        {opening.options.session_id, opening.file, opening.directory},
        generation);
    if (!message) {
      return tl::unexpected<Error>(message.error());
    }
    socket = send_start(*message, opening.directory_fd.get(), 0);
    if (socket || !was_cut_off(socket.error())) {
      break;
    }
  }
  if (!socket) {
    return context(options.directory, socket.error());
  }
  Session& now = session_to_start();
  now.start_message = std::move(*message);
  now.unpublished = false;
  now.path =
      (opening.directory == "/" ? "" : opening.directory) + "/" + opening.file;
  now.directory = opening.directory;
  now.pid = getpid();
  now.generation = generation;
  now.by_itself = by_itself;
  now.frozen = false;
  // A parent's life line in a child is not ours to close: the number may be
  // somebody else's by now. It is close-on-exec.
  static_cast<void>(now.life_line.release());
  now.life_line = move_high(std::move(*socket));
  now.life_line_inode = inode_of(now.life_line.get());
  g_wiped.session_active = true;
  g_process.arena->header->gate.store(generation, std::memory_order_release);
  g_process.live.store(1, std::memory_order_relaxed);
  return now.path;
}

void freeze_locked() {
  Session& now = session();
  if (!now.frozen) {
    ArenaHeader& header = *g_process.arena->header;
    header.gate.store(0, std::memory_order_seq_cst);
    g_process.live.store(g_process.starts_by_itself ? 1 : 0,
                         std::memory_order_relaxed);
    now.stop = sample_clocks(static_cast<ClockKind>(header.clock_kind));
    now.frozen = true;
  }
}

// The last stop() failed, and nothing has been started since.
bool stop_may_be_repeated() {
  return g_session != nullptr && session().unpublished &&
         session().pid == getpid() && !g_wiped.session_active;
}

// A session that SHP_OUTPUT_DIR began is none that the program could stop.
Status require_asked_for() {
  if (stop_may_be_repeated()) {
    return {};
  }
  if (!g_wiped.session_active || session().by_itself) {
    return misuse("Host collection is not active", ENOTCONN);
  }
  return {};
}

Result<StopReport> publish_locked() {
  freeze_locked();
  Session& now = session();
  g_wiped.session_active = false;
  const Result<DaemonReply> reply =
      ask_to_stop({now.start_message, now.directory, now.generation, now.stop});
  if (!reply) {
    now.unpublished = !now.by_itself;
    return context(now.path, reply.error());
  }
  now.unpublished = false;
  close_life_line(now);
  return StopReport{
      now.path, reply->written_spans, reply->dropped_spans, reply->bad_args};
}

tl::unexpected<Error> busy_in_this_thread() {
  return errno_error("session call inside a session call", EDEADLK);
}

}  // namespace

Result<std::string> start_session(const StartOptions& options) {
  if (!wipe_on_fork()) {
    return errno_error("preparing to record", errno);
  }
  ForkSafeLock lock(g_wiped.session_lock);
  if (!lock) {
    return busy_in_this_thread();
  }
  if (g_process.disabled) {
    return errno_error("recording is off (HOST_SERVICE_PROFILER_ENABLE=0)",
                       EPERM);
  }
  if (g_wiped.session_active) {
    if (!session().by_itself) {
      return misuse("Host collection is already active in this process",
                    EALREADY);
    }
    // The session that SHP_OUTPUT_DIR began yields to one that was asked for.
    const Result<StopReport> yielded = publish_locked();
    if (!yielded) {
      log_line("closing the SHP_OUTPUT_DIR session", yielded.error().message);
    }
  }
  return start_locked(options, false);
}

Status freeze_session() {
  ForkSafeLock lock(g_wiped.session_lock);
  if (!lock) {
    return busy_in_this_thread();
  }
  const Status active = require_asked_for();
  if (active) {
    freeze_locked();
  }
  return active;
}

void add_deferred(uint64_t key, std::string_view json) {
  const Session& now = session();
  // The daemon drains while this waits; a minute without room is a dead one.
  for (int tries = 0; tries < 6000; ++tries) {
    if (write_deferred(now.generation, key, json)) {
      return;
    }
    g_process.arena->pool.wake_daemon();
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
}

Result<StopReport> publish_session() {
  ForkSafeLock lock(g_wiped.session_lock);
  if (!lock) {
    return busy_in_this_thread();
  }
  const Status active = require_asked_for();
  if (!active) {
    return tl::unexpected<Error>(active.error());
  }
  Result<StopReport> report = publish_locked();
  // SHP_OUTPUT_DIR goes on where the program's own session ends.
  g_wiped.by_itself.store(kNotTried, std::memory_order_relaxed);
  return report;
}

Result<StopReport> stop_session() {
  const Status frozen = freeze_session();
  if (!frozen) {
    return tl::unexpected<Error>(frozen.error());
  }
  return publish_session();
}

bool can_stop_again() {
  ForkSafeLock lock(g_wiped.session_lock);
  return lock && stop_may_be_repeated();
}

ActiveSession active_session() {
  ForkSafeLock lock(g_wiped.session_lock);
  if (!lock || !g_wiped.session_active || session().by_itself) {
    return {};
  }
  return {true, session().pid, session().path};
}

Result<std::string> start_session_by_itself(const std::string& directory) {
  ForkSafeLock lock(g_wiped.session_lock);
  if (!lock) {
    return busy_in_this_thread();
  }
  if (g_wiped.session_active) {
    return misuse("a session runs already", EALREADY);
  }
  StartOptions options;
  options.directory = directory;
  return start_locked(options, true);
}

}  // namespace shp::recorder
