#include "daemon/keeper.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/base/clock.h"
#include "daemon/daemon.h"
#include "daemon/supervisor.h"

namespace shp {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// A worker that dies in its first second is started again after a while that
// doubles; one that dies before it listens, this often and no more.
constexpr int kMaxFailedStarts = 10;
constexpr int kLongestPauseMs = 1000;
// One that dies while it ends has sessions left, which another finishes; this
// often, since what kills it may be in one of them.
constexpr int kMaxEndingWorkers = 3;
constexpr int kUpgradeMs = 5000;

class Keeper {
 public:
  Keeper(const Options& options, std::vector<NamedFd> inherited)
      : options_(options), kept_(std::move(inherited)) {}
  int run();

 private:
  bool start();
  void serve();
  void hear(const std::string& said, UniqueFd fd);
  void listen_once();
  void on_signals();
  bool reap(bool wait);
  bool again();
  void pause_for(int ms);
  void upgrade();

  const Options& options_;
  std::vector<NamedFd> kept_;
  UniqueFd signals_;
  UniqueFd worker_socket_;
  pid_t worker_ = -1;
  int status_ = 0;  // of the last worker, as wait() gave it
  int64_t started_ns_ = 0;
  int short_lives_ = 0;
  int failed_starts_ = 0;
  int ending_workers_ = 0;
  bool ready_ = false;
  int ending_ = 0;  // the signal that asked for the end; the next one gets it
  int64_t upgrade_by_ns_ = 0;  // 0: no upgrade is under way
};

bool Keeper::start() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return false;
  }
  worker_socket_.reset(pair[0]);
  UniqueFd theirs(pair[1]);
  ready_ = false;
  started_ns_ = monotonic_ns();
  worker_ = fork();
  if (worker_ == 0) {
    worker_socket_.reset();
    signals_.reset();
    std::exit(run_worker(options_, std::move(kept_), std::move(theirs)));
  }
  if (worker_ > 0 && ending_ != 0) {
    kill(worker_, ending_);
  }
  return worker_ > 0;
}

// One message and the descriptor that may come with it. What a dead worker sent
// is still there to be read.
void Keeper::listen_once() {
  char text[256];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part{text, sizeof(text)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got =
      recvmsg(worker_socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      worker_socket_.reset();
    }
    return;
  }
  UniqueFd fd;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_type == SCM_RIGHTS) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head), sizeof(number));
      fd.reset(number);
    }
  }
  hear(std::string(text, static_cast<size_t>(got)), std::move(fd));
}

void Keeper::hear(const std::string& said, UniqueFd fd) {
  const size_t at = said.find("FDNAME=");
  const std::string name =
      at == std::string::npos ? "" : said.substr(at + std::strlen("FDNAME="));
  if (said.starts_with("FDSTORE=1") && fd) {
    kept_.push_back({name, std::move(fd)});
  } else if (said.starts_with("FDSTOREREMOVE=1")) {
    std::erase_if(kept_, [&](const NamedFd& one) { return one.name == name; });
  } else if (said == "READY=1") {
    ready_ = true;
  }
}

void Keeper::on_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      continue;
    }
    if (number == SIGUSR1) {
      upgrade_by_ns_ = monotonic_ns() + kUpgradeMs * (kSecond / 1000);
    } else {
      ending_ = number;
    }
    // Between two workers there is none; kill(-1) would mean every process.
    if (worker_ > 0) {
      kill(worker_, number);
    }
  }
}

bool Keeper::reap(bool wait) {
  if (waitpid(worker_, &status_, wait ? 0 : WNOHANG) != worker_) {
    return false;
  }
  worker_ = -1;
  return true;
}

void Keeper::serve() {
  for (;;) {
    pollfd watched[] = {{signals_.get(), POLLIN, 0},
                        {worker_socket_.get(), POLLIN, 0}};
    poll(watched, worker_socket_ ? 2 : 1, upgrade_by_ns_ != 0 ? 100 : -1);
    on_signals();
    if (worker_socket_) {
      listen_once();
    }
    if (upgrade_by_ns_ != 0 && monotonic_ns() > upgrade_by_ns_) {
      kill(worker_, SIGKILL);
    }
    // All that it said is heard before it is followed.
    if (!worker_socket_ && reap(true)) {
      return;
    }
  }
}

// Whether a next worker is to follow the one that ended.
bool Keeper::again() {
  if (upgrade_by_ns_ != 0) {
    if (ending_ == 0) {
      upgrade();
    }
    upgrade_by_ns_ = 0;
    return true;
  }
  if (!WIFSIGNALED(status_) ||
      (ending_ != 0 && ++ending_workers_ > kMaxEndingWorkers)) {
    return false;
  }
  failed_starts_ = ready_ ? 0 : failed_starts_ + 1;
  const bool short_life = monotonic_ns() - started_ns_ < kSecond;
  short_lives_ = short_life ? short_lives_ + 1 : 0;
  spdlog::error("signal {} ended the daemon; {}",
                WTERMSIG(status_),
                failed_starts_ < kMaxFailedStarts
                    ? "another goes on with its sessions"
                    : "given up, since it does not come to listen");
  if (failed_starts_ >= kMaxFailedStarts) {
    return false;
  }
  if (short_lives_ > 3) {
    pause_for(std::min(5 << std::min(short_lives_, 8), kLongestPauseMs));
  }
  return true;
}

// Shorter when the end is asked for. The death of the last worker is a signal
// too, and no reason to go on.
void Keeper::pause_for(int ms) {
  const int64_t until = monotonic_ns() + ms * (kSecond / 1000);
  for (;;) {
    on_signals();
    const int64_t left = until - monotonic_ns();
    if (ending_ != 0 || left <= 0) {
      return;
    }
    pollfd signal{signals_.get(), POLLIN, 0};
    poll(&signal, 1, static_cast<int>(left / (kSecond / 1000)) + 1);
  }
}

void Keeper::upgrade() {
  std::vector<std::pair<std::string, int>> entries;
  for (const NamedFd& one : kept_) {
    entries.emplace_back(one.name, one.fd.get());
  }
  exec_with(options_.program.c_str(), options_.arguments, entries);
  spdlog::error("{}: cannot be run anew ({}); the old one goes on",
                options_.program,
                std::strerror(errno));
}

int Keeper::run() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) {
    sigaddset(&set, number);
  }
  // Blocked in the worker and across an exec too: one that comes before its
  // receiver listens for it waits, and does not end it with sessions to finish.
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  do {
    if (!signals_ || !start()) {
      std::fprintf(stderr, "shpd: no process to serve in\n");
      return 1;
    }
    serve();
  } while (again());
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 1;
}

}  // namespace

int run_kept(const Options& options, std::vector<NamedFd> inherited) {
  return Keeper(options, std::move(inherited)).run();
}

}  // namespace shp
