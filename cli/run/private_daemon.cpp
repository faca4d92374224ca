#include "cli/run/private_daemon.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "cli/daemon_client.h"
#include "common/base/clock.h"
#include "common/protocol/socket_path.h"

namespace shp {
namespace {

constexpr int kStepMs = 5;
constexpr int kStartMs = 10'000;
constexpr const char* kIdleSeconds = "10";

// Between fork and exec of shpd: only what is safe there.
[[noreturn]] void become_daemon(char* const* argv, int log) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  // Whatever our parent left open in us must not stay open for as long as the
  // daemon lives: a pipe's reader would wait for its end.
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  (void)!chdir("/");
  unsetenv("LD_PRELOAD");
  execv(argv[0], argv);
  _exit(127);
}

void sleep_ms(int ms) {
  const timespec time{ms / 1000, (ms % 1000) * 1'000'000L};
  nanosleep(&time, nullptr);
}

}  // namespace

Status PrivateDaemon::choose_socket() {
  SocketEnvironment environment = current_socket_environment();
  environment.shp_socket = nullptr;
  const std::string name = "run-" + std::to_string(getpid()) + ".sock";
  const std::string own = own_socket_path(environment);
  const std::string folder = own.substr(0, own.rfind('/'));
  if (prepare_socket_directory(environment) &&
      access(folder.c_str(), W_OK) == 0) {
    socket_ = folder + "/" + name;
    unlink(socket_.c_str());  // of an earlier run with our pid
    return {};
  }
  char made[] = "/tmp/shp-run-XXXXXX";
  if (mkdtemp(made) == nullptr) {
    return errno_error("a folder for the daemon's socket under /tmp", errno);
  }
  made_folder_ = made;
  socket_ = made_folder_ + "/" + name;
  return {};
}

Status PrivateDaemon::start(const std::string& program) {
  if (auto chosen = choose_socket(); !chosen) {
    return chosen;
  }
  log_.reset(memfd_create("shpd-stderr", MFD_CLOEXEC));
  std::vector<std::string> words{
      program, "--socket", socket_, "--exit-when-idle", kIdleSeconds};
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) {
    return errno_error("fork", errno);
  }
  if (pid_ == 0) {
    become_daemon(argv.data(), log_.get());
  }
  return wait_until_it_listens();
}

Status PrivateDaemon::wait_until_it_listens() {
  const int64_t deadline = monotonic_ns() + int64_t{kStartMs} * 1'000'000;
  while (monotonic_ns() < deadline) {
    if (query_daemon(socket_, kStartMs)) {
      return {};
    }
    if (!running()) {
      const std::string said = last_words();
      return error("shpd ended before it listened" +
                   (said.empty() ? said : ": " + said));
    }
    sleep_ms(kStepMs);
  }
  end(1000);
  return error("shpd does not answer at " + socket_);
}

bool PrivateDaemon::running() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) {
    pid_ = -1;
  }
  return pid_ > 0;
}

bool PrivateDaemon::end(int timeout_ms) {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
  }
  for (int waited = 0; running() && waited < timeout_ms; waited += kStepMs) {
    sleep_ms(kStepMs);
  }
  if (pid_ <= 0 && !made_folder_.empty()) {
    unlink(socket_.c_str());
    rmdir(made_folder_.c_str());
  }
  return pid_ <= 0;
}

std::string PrivateDaemon::last_words() const {
  char bytes[4096];
  struct stat info;
  if (!log_ || fstat(log_.get(), &info) != 0) {
    return "";
  }
  const off_t from =
      std::max<off_t>(0, info.st_size - static_cast<off_t>(sizeof(bytes)));
  const ssize_t got = pread(log_.get(), bytes, sizeof(bytes), from);
  std::string text(bytes, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace shp
