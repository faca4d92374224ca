#include "daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "common/protocol/seqpacket.h"
#include "daemon/reply.h"
#include "daemon/session_keep.h"

namespace shp {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;
// Sessions get this long to publish at a shutdown; systemd's own limit is 90 s.
constexpr int64_t kShutdownNs = 60 * kSecond;
constexpr int64_t kAcceptPauseNs = 100 * kMs;
constexpr size_t kMaxConnections = 1024;
constexpr int kMaxConnectionsOfOne = 128;
constexpr int kKindShift = 56;
constexpr uint64_t kIdMask = (uint64_t{1} << kKindShift) - 1;

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);  // the terminal that it was started from closes
  sigaddset(&set, SIGUSR1);
  return set;
}

// A session holds six descriptors or so.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

Daemon::Daemon(const Options& options, UniqueFd keeper)
    : options_(options), supervisor_(std::move(keeper)), store_(supervisor_) {}

Status Daemon::open(std::vector<NamedFd> inherited) {
  raise_descriptor_limit();
  signal(SIGPIPE, SIG_IGN);
  // Blocked before the first thread, so that all have it so.
  const sigset_t ending = ending_signals();
  sigprocmask(SIG_BLOCK, &ending, nullptr);

  std::vector<NamedFd> others;
  std::vector<SessionRequest> sessions =
      kept_sessions(std::move(inherited), store_, &others);
  Result<Listener> listener = Listener::open(options_, std::move(others));
  if (!listener) {
    return tl::unexpected(listener.error());
  }
  listener_ = std::move(*listener);
  listener_.keep_in(store_);
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  signals_.reset(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  done_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !signals_ || !done_) {
    return errno_error("starting", errno);
  }
  early_ = sample_clocks(ClockKind::kTsc);
  started_ns_ = idle_since_ns_ = monotonic_ns();
  watchdog_ns_ = watchdog_interval_ns();
  next_watchdog_ns_ = watchdog_ns_ > 0 ? started_ns_ : 0;
  watch(Watch::kSignals, 0, signals_.get(), EPOLLIN);
  watch(Watch::kDone, 0, done_.get(), EPOLLIN);
  for (size_t i = 0; i < listener_.sockets().size(); ++i) {
    watch(Watch::kListener, i, listener_.sockets()[i].get(), EPOLLIN);
  }
  if (supervisor_.keeper() >= 0) {
    watch(Watch::kKeeper, 0, supervisor_.keeper(), EPOLLIN | EPOLLRDHUP);
  }
  for (SessionRequest& request : sessions) {
    go_on_with(std::move(request));
  }
  spdlog::info("shpd {} listens on {}", SHP_VERSION, listener_.path());
  supervisor_.tell("READY=1");
  return {};
}

void Daemon::watch(Watch kind, uint64_t id, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = (static_cast<uint64_t>(kind) << kKindShift) | id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

void Daemon::unwatch(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Daemon::run() {
  while (!over()) {
    epoll_event events[64];
    const int count = epoll_wait(epoll_.get(), events, 64, wait_ms());
    for (int i = 0; i < count; ++i) {
      handle(events[i].data.u64);
    }
    on_time();
  }
  listener_.close();
  if (sessions_.size() > 0) {
    // A file system that does not answer holds its thread: nothing to join.
    spdlog::error("{} sessions could not be published in time",
                  sessions_.size());
    std::_Exit(1);
  }
}

void Daemon::handle(uint64_t data) {
  const uint64_t id = data & kIdMask;
  switch (static_cast<Watch>(data >> kKindShift)) {
    case Watch::kListener:
      return accept_all(id);
    case Watch::kSignals:
      return on_signal();
    case Watch::kDone:
      return collect_finished();
    case Watch::kConnection:
      return serve(id);
    case Watch::kLifeLine:
      return life_line_ended(id);
    case Watch::kProcess:
      return process_ended(id);
    case Watch::kKeeper:
      return keeper_ended();
  }
}

// ---- connections ------------------------------------------------------------

void Daemon::accept_all(uint64_t index) {
  for (;;) {
    Result<UniqueFd> fd = accept_seqpacket(listener_.sockets()[index].get());
    if (!fd) {
      const int why = fd.error().errno_value;
      if (why == EMFILE || why == ENFILE || why == ENOMEM) {
        pause_accepting();
      }
      if (why == ECONNABORTED || why == EINTR) {
        continue;
      }
      return;
    }
    Result<Peer> peer = peer_of(fd->get());
    if (!peer) {
      continue;
    }
    const auto of_this_user = std::count_if(
        connections_.begin(), connections_.end(), [&](const auto& other) {
          return other.second.peer.uid == peer->uid;
        });
    if (connections_.size() >= kMaxConnections ||
        of_this_user >= kMaxConnectionsOfOne) {
      send_reply(fd->get(), ReplyCode::kRefused, "too many connections");
      continue;
    }
    const uint64_t id = next_id_++;
    Connection& connection = connections_[id];
    connection.id = id;
    connection.fd = std::move(*fd);
    connection.peer = std::move(*peer);
    connection.deadline_ns = monotonic_ns() + Connection::kPatienceNs;
    watch(Watch::kConnection, id, connection.fd.get(), EPOLLIN);
  }
}

// Without descriptors the listener stays readable: leave it alone for a while
// instead of turning in circles.
void Daemon::pause_accepting() {
  for (const UniqueFd& socket : listener_.sockets()) {
    unwatch(socket.get());
  }
  accept_again_ns_ = monotonic_ns() + kAcceptPauseNs;
  spdlog::error("out of file descriptors: new clients wait");
}

void Daemon::serve(uint64_t id) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) {
    return;
  }
  Connection& connection = at->second;
  if (connection.answers.empty()) {
    answer(connection);
  }
  const bool alive = connection.send_answers();
  if (alive && !connection.answers.empty()) {
    watch(Watch::kConnection, id, connection.fd.get(), EPOLLOUT);
    return;
  }
  connections_.erase(at);
}

// ---- sessions ---------------------------------------------------------------

Status Daemon::launch(SessionRequest request,
                      UniqueFd life_line,
                      std::shared_ptr<Session> before) {
  Result<std::shared_ptr<Session>> session = Session::launch(
      std::move(request), done_.get(), store_, std::move(before));
  if (!session) {
    return tl::unexpected(session.error());
  }
  const uint64_t id = next_id_++;
  SessionTable::Entry entry{*session, std::move(life_line), false};
  if (entry.life_line) {
    watch(Watch::kLifeLine, id, entry.life_line.get(), EPOLLIN | EPOLLRDHUP);
  }
  if (const int pidfd = (*session)->request().peer.pidfd.get(); pidfd >= 0) {
    watch(Watch::kProcess, id, pidfd, EPOLLIN);
    entry.process_watched = true;
  }
  sessions_.add(id, std::move(entry));
  return {};
}

void Daemon::process_ended(uint64_t id) {
  SessionTable::Entry* entry = sessions_.find(id);
  if (entry == nullptr) {
    return;
  }
  const Peer& peer = entry->session->request().peer;
  unwatch(peer.pidfd.get());
  entry->process_watched = false;
  entry->session->note_exit(exit_status_of(peer.pidfd.get(), peer.pid));
}

// The client never speaks on this connection again, so whatever made it
// readable is its end, or nonsense.
void Daemon::life_line_ended(uint64_t id) {
  SessionTable::Entry* entry = sessions_.find(id);
  if (entry == nullptr) {
    return;
  }
  unwatch(entry->life_line.get());
  entry->life_line.reset();
  if (entry->session->request().peer.pidfd) {
    entry->session->note_hang_up();
  } else {
    // No pidfd (a kernel before 5.3): the connection is all that tells.
    entry->session->note_exit({});
  }
}

void Daemon::collect_finished() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(done_.get(), &count, sizeof(count));
  sessions_.collect([this](SessionTable::Entry& entry) {
    if (entry.life_line) {
      unwatch(entry.life_line.get());
    }
    if (entry.process_watched) {
      unwatch(entry.session->request().peer.pidfd.get());
    }
  });
  if (is_idle()) {
    idle_since_ns_ = monotonic_ns();
  }
}

// ---- time and the end
// ---------------------------------------------------------

void Daemon::on_signal() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGUSR1) {
      give_way();
    }
    begin_shutdown();
  }
}

void Daemon::begin_shutdown() {
  if (shutdown_ends_ns_ != 0) {
    return;
  }
  supervisor_.tell("STOPPING=1");
  spdlog::info("ending: {} sessions to publish", sessions_.size());
  shutdown_ends_ns_ = monotonic_ns() + kShutdownNs;
  sessions_.for_each([](Session& session) { session.note_shutdown(); });
}

bool Daemon::is_idle() const {
  return sessions_.size() == 0 && connections_.empty();
}

bool Daemon::over() {
  const int64_t now = monotonic_ns();
  if (shutdown_ends_ns_ != 0) {
    return sessions_.size() == 0 || now >= shutdown_ends_ns_;
  }
  return options_.exit_when_idle_s > 0 && is_idle() &&
         now - idle_since_ns_ >= options_.exit_when_idle_s * kSecond &&
         may_leave();
}

// A client that connected at the last moment is served all the same.
bool Daemon::may_leave() {
  if (listener_.leave()) {
    return true;
  }
  const size_t last = listener_.sockets().size() - 1;
  watch(Watch::kListener, last, listener_.sockets()[last].get(), EPOLLIN);
  idle_since_ns_ = monotonic_ns();
  return false;
}

int Daemon::wait_ms() const {
  const int64_t now = monotonic_ns();
  int64_t until = now + 3600 * kSecond;
  const auto not_before = [&](int64_t time_ns) {
    until = time_ns != 0 ? std::min(until, time_ns) : until;
  };
  for (const auto& [id, connection] : connections_) {
    not_before(connection.deadline_ns);
  }
  not_before(accept_again_ns_);
  not_before(shutdown_ends_ns_);
  not_before(next_watchdog_ns_);
  if (options_.exit_when_idle_s > 0 && is_idle()) {
    not_before(idle_since_ns_ + options_.exit_when_idle_s * kSecond);
  }
  return static_cast<int>(std::max<int64_t>(until - now + kMs - 1, 0) / kMs);
}

void Daemon::on_time() {
  const int64_t now = monotonic_ns();
  std::erase_if(connections_, [now](const auto& entry) {
    return entry.second.deadline_ns <= now;
  });
  if (!is_idle()) {
    idle_since_ns_ = now;
  }
  if (accept_again_ns_ != 0 && now >= accept_again_ns_) {
    accept_again_ns_ = 0;
    for (size_t i = 0; i < listener_.sockets().size(); ++i) {
      watch(Watch::kListener, i, listener_.sockets()[i].get(), EPOLLIN);
    }
  }
  if (watchdog_ns_ > 0 && now >= next_watchdog_ns_) {
    next_watchdog_ns_ = now + watchdog_ns_;
    supervisor_.tell("WATCHDOG=1");
  }
}

int run_worker(const Options& options,
               std::vector<NamedFd> inherited,
               UniqueFd keeper) {
  Daemon daemon(options, std::move(keeper));
  const Status opened = daemon.open(std::move(inherited));
  if (opened) {
    daemon.run();
    return 0;
  }
  if (opened.error().errno_value == EALREADY) {
    return 0;
  }
  std::fprintf(stderr, "shpd: %s\n", opened.error().message.c_str());
  return 1;
}

}  // namespace shp
