// What the kernel says about a traced process: whether and how it ended, and
// whether it still is the program that it was. Any thread of the daemon.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "common/base/result.h"

namespace shp {

// Up to `limit` bytes of /proc/PID/NAME.
[[nodiscard]] Result<std::string> read_proc_file(pid_t pid,
                                                 const char* name,
                                                 size_t limit);

// True once the process behind the pidfd has exited (a zombie has).
[[nodiscard]] bool has_exited(int pidfd);

struct ExitStatus {
  bool known = false;
  int code = -1;    // of exit(), when it exited
  int signal = -1;  // when a signal ended it
};

// How it ended: the pidfd's own record (Linux 6.15, once it is reaped), else
// /proc/PID/stat while it is a zombie, else unknown.
[[nodiscard]] ExitStatus exit_status_of(int pidfd, pid_t pid);

// The exit code field of a wait status, and of a line of /proc/PID/stat. Pure.
[[nodiscard]] ExitStatus from_wait_status(int status);
[[nodiscard]] ExitStatus exit_status_in_stat(const std::string& stat);

// False when /proc hides what it knows of the process from us.
[[nodiscard]] bool may_look_at(pid_t pid);

enum class Mapped { kYes, kNo, kUnknown };

// Whether the process has the file (st_dev, st_ino) mapped. kUnknown when that
// may not be read, or the process has no memory any more.
[[nodiscard]] Mapped has_mapped(pid_t pid, dev_t device, ino_t inode);
// The same of the text of /proc/PID/maps. Pure.
[[nodiscard]] Mapped find_mapping(const std::string& maps,
                                  dev_t device,
                                  ino_t inode);

}  // namespace shp
