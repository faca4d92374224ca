// The recorded process's side: memory, directory, program, what guards it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "cli/doctor/checks.h"
#include "cli/run/preloadable.h"
#include "common/base/unique_fd.h"

namespace shp {
namespace {

// An arena of the default size: blocks and tables, nearly all of it untouched.
constexpr rlim_t kArenaBytes = rlim_t{360} << 20;
constexpr rlim_t kSmallestArenaBytes = rlim_t{3} << 20;
constexpr uint64_t kLittleRoom = 100U << 20;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void check_limit(int which, const char* name, Findings* out) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(which), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kArenaBytes) {
    return;
  }
  const bool hopeless = limit.rlim_cur < kSmallestArenaBytes;
  out->push_back({hopeless ? Verdict::kBad : Verdict::kNote,
                  fmt::format("{} is {} MiB: {}",
                              name,
                              limit.rlim_cur >> 20,
                              hopeless ? "too little for any span memory"
                                       : "span memory is made smaller to fit"),
                  "raise it (ulimit), or ask for less with SHP_MEMORY=MiB"});
}

void check_links(int directory, const std::string& path, Findings* out) {
  const UniqueFd file(openat(directory, ".", O_TMPFILE | O_RDWR, 0600));
  if (!file) {
    return;  // no such files here: links cannot be tried without a trace
  }
  const std::string name = ".shp-doctor-" + std::to_string(getpid());
  const std::string self = "/proc/self/fd/" + std::to_string(file.get());
  if (linkat(
          AT_FDCWD, self.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) ==
      0) {
    unlinkat(directory, name.c_str(), 0);
  } else {
    out->push_back({Verdict::kNote,
                    fmt::format("{}: no hard links here ({}); files get their "
                                "names by renameat2",
                                path,
                                std::strerror(errno)),
                    ""});
  }
}

}  // namespace

void check_memory(const Patient&, Findings* out) {
  const size_t before = out->size();
  const UniqueFd fd(memfd_create("shp-doctor", MFD_ALLOW_SEALING));
  if (!fd) {
    out->push_back({Verdict::kBad,
                    fmt::format("memfd_create: {}", std::strerror(errno)),
                    "a seccomp filter or a kernel before 3.17: allow "
                    "memfd_create"});
  }
  check_limit(RLIMIT_AS, "RLIMIT_AS (ulimit -v)", out);
  check_limit(RLIMIT_FSIZE, "RLIMIT_FSIZE (ulimit -f)", out);
  if (out->size() == before) {
    out->push_back({Verdict::kGood, "there is memory for spans", ""});
  }
}

void check_directory(const Patient& patient, Findings* out) {
  const char* asked = std::getenv("SHP_OUTPUT_DIR");
  const std::string path = !patient.directory.empty() ? patient.directory
                           : asked != nullptr         ? asked
                                                      : ".";
  const UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY));
  if (!directory) {
    if (errno == ENOENT) {
      out->push_back(
          {Verdict::kNote, path + " is not there yet; it will be made", ""});
      return;
    }
    out->push_back({Verdict::kBad,
                    path + ": " + std::strerror(errno),
                    "name a directory that you may write to"});
    return;
  }
  if (faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    out->push_back({Verdict::kBad,
                    path + ": " + std::strerror(errno),
                    "host files are written with your own rights: name a "
                    "directory that you may write to"});
    return;
  }
  struct statvfs room {};
  fstatvfs(directory.get(), &room);
  const uint64_t free_bytes = uint64_t{room.f_bavail} * room.f_frsize;
  out->push_back(
      {free_bytes < kLittleRoom ? Verdict::kNote : Verdict::kGood,
       fmt::format("{} may be written to, {} MiB free", path, free_bytes >> 20),
       free_bytes < kLittleRoom
           ? "a span takes some 130 bytes; on a full disk spans wait in memory "
             "and are then lost, and counted"
           : ""});
  check_links(directory.get(), path, out);
}

void check_program(const Patient& patient, Findings* out) {
  if (patient.program.empty()) {
    return;
  }
  const char* path = std::getenv("PATH");
  const std::string why =
      why_not_preloaded(patient.program, path == nullptr ? "" : path);
  if (!why.empty()) {
    out->push_back({Verdict::kBad,
                    patient.program + ": LD_PRELOAD does not apply: " + why,
                    "link it with libshp.so, or use shp.h in it"});
    return;
  }
  struct stat info {};
  if (stat(patient.program.c_str(), &info) == 0 &&
      (info.st_mode & (S_ISUID | S_ISGID)) != 0) {
    out->push_back({Verdict::kBad,
                    patient.program + " is setuid: ld.so ignores LD_PRELOAD",
                    "record what it starts instead"});
    return;
  }
  out->push_back(
      {Verdict::kGood, patient.program + " can be preloaded into", ""});
}

void check_guards(const Patient&, Findings* out) {
  if (first_line("/sys/fs/selinux/enforce") == "1") {
    out->push_back({Verdict::kNote,
                    "SELinux enforces: a confined program may be kept from "
                    "the socket or from LD_PRELOAD",
                    "ausearch -m avc -c shpd, and for your program's name"});
  }
  if (first_line("/sys/module/apparmor/parameters/enabled") == "Y" &&
      first_line("/proc/self/attr/current").find("enforce") !=
          std::string::npos) {
    out->push_back({Verdict::kNote,
                    "AppArmor confines this shell; so it may your program",
                    "dmesg | grep -i apparmor"});
  }
  const std::string seccomp = [] {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("Seccomp:", 0) == 0) {
        return line.substr(line.find_last_of("\t ") + 1);
      }
    }
    return std::string("0");
  }();
  if (seccomp == "2") {
    out->push_back({Verdict::kNote,
                    "a seccomp filter (a container's?) is on; spans need "
                    "memfd_create, and are better with pidfd_open",
                    ""});
  }
}

}  // namespace shp
