#include "preload/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>

#include "common/base/clock.h"
#include "preload/daemon_link.h"
#include "preload/futex.h"
#include "preload/log.h"
#include "preload/names.h"
#include "preload/process_facts.h"
#include "preload/recorder.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace shp::recorder {
namespace {

constexpr uint64_t kDefaultMemory = 256U << 20;
constexpr int kStartMs = 10'000;
constexpr int kStopMs = 600'000;
constexpr int kHighFd = 500;
constexpr int64_t kStartWaitNs = 2'000'000'000;

// What a session needs until it is published. A forked child inherits the
// bytes, but g_wiped.session_active is false there.
struct Session {
  std::string path;
  std::string directory;
  int pid = 0;
  uint32_t generation = 0;
  bool by_itself = false;  // from SHP_OUTPUT_DIR, not from a start()
  bool frozen = false;
  ClockSample stop;
  UniqueFd life_line;  // the Start connection, never spoken on again
  ino_t life_line_inode = 0;
};

// On the heap and never freed: threads may record until the very end, after
// static destructors.
Session& session() {
  static Session* const instance = new Session();
  return *instance;
}

uint64_t memory_budget() {
  const char* text = std::getenv("SHP_MEMORY");  // MiB
  if (text == nullptr) {
    return kDefaultMemory;
  }
  const unsigned long long mib = std::strtoull(text, nullptr, 10);
  return std::clamp(mib, 1ULL, 4096ULL) << 20;
}

// "wait:MS": how long a span call may wait for room, 1 s at most.
int64_t full_wait_ns() {
  const char* text = std::getenv("SHP_FULL");
  if (text == nullptr || std::strncmp(text, "wait", 4) != 0) {
    return 0;
  }
  const long ms = text[4] == ':' ? std::strtol(text + 5, nullptr, 10) : 100;
  return std::clamp(ms, 1L, 1000L) * 1'000'000;
}

// Out of the way of programs that count on low numbers or close a range.
UniqueFd move_high(UniqueFd fd) {
  const int high = fcntl(fd.get(), F_DUPFD_CLOEXEC, kHighFd);
  return high >= 0 ? UniqueFd(high) : std::move(fd);
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

void forget_in_child() {
  // Without MADV_WIPEONFORK (a kernel before 4.14, gVisor) this handler does
  // its work; memset on atomics is what the kernel's wiping amounts to.
  std::memset(static_cast<void*>(&g_wiped), 0, sizeof(g_wiped));
}

bool wipe_on_fork() {
  static bool armed = false;
  if (!armed) {
    armed = madvise(&g_wiped, sizeof(g_wiped), MADV_WIPEONFORK) == 0 ||
            pthread_atfork(nullptr, nullptr, forget_in_child) == 0;
  }
  return armed;
}

// This process's arena, made at its first session. A child's parent's arena is
// left mapped: the child may be a vfork's, and it costs nothing.
Status ensure_arena() {
  if (g_wiped.gate.load(std::memory_order_relaxed) != nullptr) {
    return {};
  }
  if (!wipe_on_fork() || !watch_thread_exits()) {
    return errno_error("preparing to record", errno);
  }
  auto* arena = new ClientArena();
  if (!create_arena(memory_budget(), *arena)) {
    const int why = errno;
    delete arena;
    return errno_error("cannot make shared memory for spans", why);
  }
  arena->memfd = move_high(std::move(arena->memfd));
  arena->pool.wait_ns = full_wait_ns();
  g_process.arena = arena;
  g_process.next_ring.store(0, std::memory_order_relaxed);
  ++g_process.serial;
  if (!attach_names(*arena)) {
    return error("no memory for span names");
  }
  g_wiped.gate.store(&arena->header->gate, std::memory_order_release);
  return {};
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

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

Status make_directories(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') {
      continue;
    }
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0777) != 0) {
      const int why = errno;
      if (!exists(part)) {
        return errno_error(part, why);
      }
    }
  }
  return {};
}

// Makes the directory, opens it, and gives its absolute path without links.
Result<UniqueFd> open_directory(const std::string& wanted, std::string& real) {
  if (wanted.empty()) {
    return errno_error("output directory", ENOENT);
  }
  UniqueFd fd(open(wanted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) {
    const Status made = make_directories(wanted);
    if (!made) {
      return tl::unexpected<Error>(made.error());
    }
    fd.reset(open(wanted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  if (!fd) {
    // A file in the directory's place is what mkdir calls it: EEXIST.
    const int why = errno;
    return errno_error(wanted, why == ENOTDIR && exists(wanted) ? EEXIST : why);
  }
  char* resolved = realpath(wanted.c_str(), nullptr);
  if (resolved == nullptr) {
    return errno_error(wanted, errno);
  }
  real = resolved;
  std::free(resolved);
  return fd;
}

struct Opening {
  StartOptions options;
  std::string file;
  std::string directory;
  UniqueFd directory_fd;
};

Result<UniqueFd> send_start(const Opening& opening, uint32_t generation) {
  ArenaHeader& header = *g_process.arena->header;
  const std::string hostname = own_hostname();
  const std::string argv = own_argv();
  StartRequest request{};
  request.abi_version = kAbiVersion;
  request.generation = generation;
  std::memcpy(request.token, header.token, sizeof(request.token));
  request.pid = getpid();
  request.ppid = getppid();
  request.pid_namespace = own_pid_namespace();
  request.start = sample_clocks(static_cast<ClockKind>(header.clock_kind));
  StartTexts texts;
  texts[kSessionIdText] = opening.options.session_id;
  texts[kFileNameText] = opening.file;
  texts[kDirectoryText] = opening.directory;
  texts[kHostnameText] = hostname;
  texts[kArgvText] = argv;
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  request.flags = pidfd ? kHasPidfd : 0U;
  const int fds[] = {
      g_process.arena->memfd.get(), opening.directory_fd.get(), pidfd.get()};
  const Result<std::string> message = pack_start(request, texts);
  if (!message) {
    return tl::unexpected<Error>(message.error());
  }
  Result<UniqueFd> socket = connect_daemon(true);
  if (!socket) {
    return socket;
  }
  const Result<DaemonReply> reply =
      ask_daemon(socket->get(), *message, fds, pidfd ? 3 : 2, kStartMs);
  if (!reply) {
    return tl::unexpected<Error>(reply.error());
  }
  return socket;
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
  const std::string stem =
      options.file_prefix + "_" + std::to_string(getpid()) + "_" + random_hex();
  opening.file = stem + ".jsonl";
  if (opening.options.session_id.empty()) {
    opening.options.session_id = stem;
  }
  const Status arena = ensure_arena();
  if (!arena) {
    return tl::unexpected<Error>(arena.error());
  }
  static uint32_t generations = 0;  // goes on counting in a forked child
  const uint32_t generation = ++generations;
  Result<UniqueFd> socket = send_start(opening, generation);
  if (!socket) {
    return context(options.directory, socket.error());
  }
  Session& now = session();
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

// A session that SHP_OUTPUT_DIR began is none that the program could stop.
Status require_asked_for() {
  if (!g_wiped.session_active || session().by_itself) {
    return misuse("Host collection is not active", ENOTCONN);
  }
  return {};
}

Result<StopReport> publish_locked() {
  freeze_locked();
  Session& now = session();
  StopRequest request{};
  std::memcpy(
      request.token, g_process.arena->header->token, sizeof(request.token));
  request.generation = now.generation;
  request.stop = now.stop;
  g_wiped.session_active = false;
  Result<UniqueFd> socket = connect_daemon(false);
  if (!socket) {
    return context(now.path, socket.error());
  }
  const Result<DaemonReply> reply =
      ask_daemon(socket->get(), pack_stop(request), nullptr, 0, kStopMs);
  if (!reply) {
    return context(now.path, reply.error());
  }
  close_life_line(now);
  return StopReport{
      now.path, reply->written_spans, reply->dropped_spans, reply->bad_args};
}

tl::unexpected<Error> busy_in_this_thread() {
  return errno_error("session call inside a session call", EDEADLK);
}

}  // namespace

Result<std::string> start_session(const StartOptions& options) {
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

ActiveSession active_session() {
  ForkSafeLock lock(g_wiped.session_lock);
  if (!lock || !g_wiped.session_active || session().by_itself) {
    return {};
  }
  return {true, session().pid, session().path};
}

// ---- the first span of a process under SHP_OUTPUT_DIR
// ------------------------

namespace {

void try_start_by_itself() {
  ForkSafeLock lock(g_wiped.session_lock);
  if (!lock || g_wiped.session_active) {
    return;
  }
  StartOptions options;
  options.directory = std::getenv("SHP_OUTPUT_DIR");
  const Result<std::string> started = start_locked(options, true);
  if (!started) {
    log_line("SHP_OUTPUT_DIR", started.error().message);
    return;
  }
  g_process.arena->header->lost_no_ring.fetch_add(
      g_wiped.lost_while_starting.exchange(0), std::memory_order_relaxed);
}

}  // namespace

namespace {

// Other threads' first spans wait for the one that starts the session, so that
// none of them is lost; a handler inside the starting thread cannot, and after
// kStartWaitNs the others do not either: those spans are counted.
void wait_for_starter(uint32_t self) {
  const int64_t deadline = monotonic_ns() + kStartWaitNs;
  while (g_wiped.by_itself.load(std::memory_order_acquire) == kStarting) {
    const int64_t left = deadline - monotonic_ns();
    if (left <= 0 || g_wiped.starter.load(std::memory_order_relaxed) == self) {
      g_wiped.lost_while_starting.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    futex_wait_private(g_wiped.by_itself, kStarting, left);
  }
}

void run_starter(uint32_t self) {
  g_wiped.starter.store(self, std::memory_order_relaxed);
  try {
    try_start_by_itself();
  } catch (const std::bad_alloc&) {
    log_line("SHP_OUTPUT_DIR", "no memory");
  }
  g_wiped.starter.store(0, std::memory_order_relaxed);
  g_wiped.by_itself.store(kTried, std::memory_order_release);
  futex_wake_private(g_wiped.by_itself, INT_MAX);
}

}  // namespace

uint32_t start_by_itself() noexcept {
  uint32_t state = g_wiped.by_itself.load(std::memory_order_acquire);
  if (state == kTried) {
    // The starter may have come to its end since our caller saw no session.
    return recording();
  }
  const int saved = errno;
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  if (state == kNotTried &&
      g_wiped.by_itself.compare_exchange_strong(state, kStarting)) {
    run_starter(self);
  } else {
    wait_for_starter(self);
  }
  errno = saved;
  return recording();
}

}  // namespace shp::recorder
