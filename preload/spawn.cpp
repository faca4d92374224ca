#include "preload/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

extern char** environ;

namespace shp::recorder {
namespace {

constexpr const char* kIdleSeconds = "10";
constexpr size_t kStackBytes = 65536;

std::string own_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  char* real = realpath(info.dli_fname, nullptr);
  std::string path = real != nullptr ? real : info.dli_fname;
  std::free(real);
  return path.substr(0, path.rfind('/'));
}

std::string find_daemon() {
  const char* named = std::getenv("SHP_DAEMON");
  if (named != nullptr && named[0] != '\0') {
    return named;
  }
  const std::string here = own_directory();
  for (const char* place : {"/shpd",
                            "/../bin/shpd",
                            "/../../bin/shpd",
                            "/../daemon/shpd",
                            "/../libexec/shp/shpd",
                            "/../../../../bin/shpd",
                            "/../../../bin/shpd"}) {
    const std::string candidate = here + place;
    if (access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

// The program's environment less what would make the daemon record itself.
std::vector<char*> daemon_environment() {
  std::vector<char*> result;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    if (!entry.starts_with("LD_PRELOAD=") &&
        !entry.starts_with("SHP_OUTPUT_DIR=")) {
      result.push_back(*at);
    }
  }
  result.push_back(nullptr);
  return result;
}

struct Plan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  sigset_t no_signals;
  char* inner_stack_top;
};

// The daemon-to-be and the process between run on stacks of their own in the
// program's memory until exec and _exit: system calls only.
int daemon_child(void* value) {
  const Plan& plan = *static_cast<const Plan*>(value);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction ignore_or_default {};
    if (sigaction(number, nullptr, &ignore_or_default) == 0 &&
        ignore_or_default.sa_handler != SIG_DFL) {
      ignore_or_default = {};
      ignore_or_default.sa_handler = SIG_DFL;
      sigaction(number, &ignore_or_default, nullptr);
    }
  }
  sigprocmask(SIG_SETMASK, &plan.no_signals, nullptr);
  syscall(SYS_setsid);
  const int null = open("/dev/null", O_RDWR);
  if (null >= 0) {
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
  }
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
    for (int fd = 3; fd < 1024; ++fd) {
      close(fd);
    }
  }
  if (chdir("/") != 0) {
    // Kept where it is; only a mount point's busyness hangs on it.
  }
  execve(plan.program, plan.arguments, plan.environment);
  _exit(127);
}

// A process between, which ends at once, so that the daemon is nobody's child
// and leaves no zombie behind.
int middle_child(void* value) {
  Plan& plan = *static_cast<Plan*>(value);
  const pid_t child = clone(daemon_child,
                            plan.inner_stack_top,
                            CLONE_VM | CLONE_VFORK | SIGCHLD,
                            value);
  _exit(child > 0 ? 0 : 1);
}

// CLONE_VFORK so that the program's memory stays put until exec, no exit signal
// so that the program never hears of its child. All signals are blocked
// meanwhile: a handler of the program must not run in the child.
bool clone_detached(Plan& plan) {
  void* stack = mmap(nullptr,
                     kStackBytes,
                     PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                     -1,
                     0);
  if (stack == MAP_FAILED) {
    return false;
  }
  char* top = static_cast<char*>(stack) + kStackBytes;
  plan.inner_stack_top = top - kStackBytes / 2;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  sigemptyset(&plan.no_signals);
  const pid_t middle = clone(middle_child, top, CLONE_VM | CLONE_VFORK, &plan);
  const int saved = errno;
  int status = 0;
  const bool started =
      middle > 0 && waitpid(middle, &status, __WCLONE) == middle && status == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  munmap(stack, kStackBytes);
  errno = saved;
  return started;
}

}  // namespace

Status spawn_daemon() {
  const std::string program = find_daemon();
  if (program.empty()) {
    return error("shpd was not found beside libshp.so (set SHP_DAEMON)");
  }
  std::string name = "shpd";
  std::string option = "--exit-when-idle";
  std::string seconds = kIdleSeconds;
  char* arguments[] = {name.data(), option.data(), seconds.data(), nullptr};
  std::vector<char*> environment = daemon_environment();
  Plan plan{program.c_str(), arguments, environment.data(), {}, nullptr};
  if (!clone_detached(plan)) {
    return errno_error(program, errno);
  }
  return {};
}

}  // namespace shp::recorder
