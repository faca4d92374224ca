#include "cli/run/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "common/base/unique_fd.h"

namespace shp {
namespace {

constexpr std::array kPassedOn = {SIGINT,
                                  SIGTERM,
                                  SIGHUP,
                                  SIGQUIT,
                                  SIGTSTP,
                                  SIGCONT,
                                  SIGWINCH,
                                  SIGUSR1,
                                  SIGUSR2};

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP ||
         signal == SIGQUIT;
}

// nohup and `trap '' HUP` set a signal to ignored for a whole tree: keep it so.
bool is_ignored(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) {
    result.push_back(const_cast<char*>(text.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

Child::Child() {
  sigemptyset(&handled_);
  sigaddset(&handled_, SIGCHLD);
  // Also those that we ignore: blocked they reach us all the same, and a
  // program that was started with them ignored may have come to handle them.
  for (const int signal : kPassedOn) {
    sigaddset(&handled_, signal);
  }
  // An ignored SIGCHLD, which a shell may leave us, would throw the child's
  // status away. exec keeps "ignored", so the child is given it back.
  sigprocmask(SIG_BLOCK, &handled_, &before_);
}

Child::~Child() {
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Status Child::start(const std::vector<std::string>& argv,
                    const Environment& environment) {
  const std::vector<char*> arguments = pointers(argv);
  const std::vector<char*> variables = pointers(environment);
  const bool ignores_children = is_ignored(SIGCHLD);
  signal(SIGCHLD, SIG_DFL);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return errno_error("pipe", errno);
  }
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  pid_ = fork();
  if (pid_ < 0) {
    return errno_error("fork", errno);
  }
  if (pid_ == 0) {
    if (ignores_children) {
      signal(SIGCHLD, SIG_IGN);
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    execvpe(arguments[0], arguments.data(), variables.data());
    const int failed = errno;
    (void)!write(write_end.get(), &failed, sizeof(failed));
    _exit(127);
  }
  write_end.reset();
  int failed = 0;
  ssize_t got;
  do {
    got = read(read_end.get(), &failed, sizeof(failed));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(failed)) {
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return errno_error(argv[0], failed);
  }
  return {};
}

int Child::wait() {
  for (;;) {
    int status = 0;
    if (ended(status)) {
      return status;
    }
    siginfo_t info;
    if (sigwaitinfo(&handled_, &info) > 0 && info.si_signo != SIGCHLD) {
      pass_on(info);
    }
  }
}

bool Child::interrupted_within(int timeout_ms) {
  const timespec timeout{timeout_ms / 1000, (timeout_ms % 1000) * 1'000'000L};
  siginfo_t info;
  const int signal = sigtimedwait(&handled_, &info, &timeout);
  return signal > 0 && asks_to_end(signal) && !is_ignored(signal);
}

// si_code is SI_KERNEL (above 0) for what a terminal sends to its whole
// foreground group, our child included. A child that signals its group reached
// itself already.
void Child::pass_on(const siginfo_t& info) const {
  if (info.si_code <= 0 && info.si_pid != pid_) {
    kill(pid_, info.si_signo);
  }
}

bool Child::ended(int& status) {
  for (;;) {
    const pid_t got = waitpid(pid_, &status, WNOHANG | WUNTRACED);
    if (got == pid_ && WIFSTOPPED(status)) {
      stop_with_it();
    } else if (got == pid_) {
      return true;
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      status = 0;
      return true;
    }
  }
}

// Only under a terminal's job control: there a shell waits to hear of it and
// will continue our group. Without one, nobody would ever continue us. SIGTSTP
// and not SIGSTOP: the kernel drops it where no shell is left to continue us.
void Child::stop_with_it() {
  const UniqueFd terminal(open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!terminal) {
    return;
  }
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  signal(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // we stop here
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  kill(pid_, SIGCONT);
}

void end_like(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(number);
    std::_Exit(128 + number);
  }
  std::_Exit(WEXITSTATUS(wait_status));
}

}  // namespace shp
