#include "daemon/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/base/unique_fd.h"

namespace shp {
namespace {

// linux/pidfd.h of Linux 6.15, which no stable Debian has yet.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t ids[11];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kPidfdInfoExit = 1U << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xff, 11, PidfdInfo);

constexpr size_t kMaxMapsBytes = 16U << 20;

ExitStatus from_pidfd(int pidfd) {
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  if (ioctl(pidfd, kPidfdGetInfo, &info) != 0 ||
      (info.mask & kPidfdInfoExit) == 0) {
    return {};
  }
  return from_wait_status(info.exit_code);
}

}  // namespace

Result<std::string> read_proc_file(pid_t pid, const char* name, size_t limit) {
  const std::string path = "/proc/" + std::to_string(pid) + '/' + name;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return errno_error(path, errno);
  }
  std::string text;
  char piece[4096];
  while (text.size() < limit) {
    const ssize_t got = read(fd.get(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return errno_error(path, errno);
    }
    if (got == 0) {
      break;
    }
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

bool has_exited(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

ExitStatus from_wait_status(int status) {
  ExitStatus exit;
  if (WIFSIGNALED(status)) {
    exit.known = true;
    exit.signal = WTERMSIG(status);
  } else if (WIFEXITED(status)) {
    exit.known = true;
    exit.code = WEXITSTATUS(status);
  }
  return exit;
}

// proc(5): the command stands in brackets and may hold anything, so fields are
// counted behind the last bracket: 3 is the state, 52 the exit code.
ExitStatus exit_status_in_stat(const std::string& stat) {
  size_t at = stat.rfind(')');
  if (at == std::string::npos || at + 2 >= stat.size() || stat[at + 2] != 'Z') {
    return {};
  }
  at += 2;
  for (int field = 3; field < 52; ++field) {
    at = stat.find(' ', at);
    if (at == std::string::npos) {
      return {};
    }
    ++at;
  }
  return from_wait_status(std::atoi(stat.c_str() + at));
}

// Who may not look at a process reads 0 in the exit code's place (fs/proc/
// array.c), which would make a clean exit of a kill. The same right decides
// over the cwd link, and there the answer is EACCES.
bool may_look_at(pid_t pid) {
  char target[8];
  const std::string path = "/proc/" + std::to_string(pid) + "/cwd";
  return readlink(path.c_str(), target, sizeof(target)) >= 0 || errno != EACCES;
}

ExitStatus exit_status_of(int pidfd, pid_t pid) {
  ExitStatus status = from_pidfd(pidfd);
  if (!status.known && pid > 0 && may_look_at(pid)) {
    const Result<std::string> stat = read_proc_file(pid, "stat", 4096);
    if (stat) {
      status = exit_status_in_stat(*stat);
    }
  }
  // Reaped between the two looks.
  return status.known ? status : from_pidfd(pidfd);
}

Mapped find_mapping(const std::string& maps, dev_t device, ino_t inode) {
  char wanted[64];
  std::snprintf(wanted,
                sizeof(wanted),
                " %02x:%02x %lu ",
                major(device),
                minor(device),
                static_cast<unsigned long>(inode));
  if (maps.empty()) {
    return Mapped::kUnknown;
  }
  return maps.find(wanted) != std::string::npos ? Mapped::kYes : Mapped::kNo;
}

Mapped has_mapped(pid_t pid, dev_t device, ino_t inode) {
  const Result<std::string> maps = read_proc_file(pid, "maps", kMaxMapsBytes);
  if (!maps || maps->size() >= kMaxMapsBytes) {
    return Mapped::kUnknown;
  }
  return find_mapping(*maps, device, inode);
}

}  // namespace shp
