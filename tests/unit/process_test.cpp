#include "daemon/process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "common/base/unique_fd.h"

namespace shp {
namespace {

template <typename Body>
pid_t in_child(Body&& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(99);
  }
  return pid;
}

UniqueFd pidfd_of(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

void wait_for_exit(int pidfd) {
  while (!has_exited(pidfd)) {
    usleep(1000);
  }
}

TEST_CASE("a zombie's exit code and signal are known before it is reaped") {
  const pid_t exits = in_child([] { _exit(3); });
  const pid_t dies = in_child([] { raise(SIGKILL); });
  const UniqueFd exited = pidfd_of(exits);
  const UniqueFd died = pidfd_of(dies);
  wait_for_exit(exited.get());
  wait_for_exit(died.get());
  const ExitStatus code = exit_status_of(exited.get(), exits);
  CHECK(code.known);
  CHECK(code.code == 3);
  CHECK(code.signal == -1);
  const ExitStatus signal = exit_status_of(died.get(), dies);
  CHECK(signal.known);
  CHECK(signal.signal == SIGKILL);
  CHECK(signal.code == -1);
  waitpid(exits, nullptr, 0);
  waitpid(dies, nullptr, 0);
}

TEST_CASE("a process that lives has no exit status") {
  const UniqueFd self = pidfd_of(getpid());
  CHECK_FALSE(has_exited(self.get()));
  CHECK_FALSE(exit_status_of(self.get(), getpid()).known);
}

TEST_CASE("the exit code is field 52 of stat, whatever the command's name") {
  // Fields 4 to 51 stand for themselves here.
  std::string line = "7 (a) b (c) Z";
  for (int field = 4; field <= 51; ++field) {
    line += ' ' + std::to_string(field);
  }
  const ExitStatus killed = exit_status_in_stat(line + " 9\n");
  CHECK(killed.signal == 9);
  const ExitStatus exited = exit_status_in_stat(line + " 512\n");
  CHECK(exited.code == 2);
  CHECK_FALSE(exit_status_in_stat(line).known);
  CHECK_FALSE(exit_status_in_stat("7 (a) R 1 2").known);
  CHECK_FALSE(exit_status_in_stat("").known);
  CHECK_FALSE(exit_status_in_stat("7 (a)").known);
}

TEST_CASE("a file is found among a process's mappings, and only then") {
  const UniqueFd file(memfd_create("shp-arena", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), 4096) == 0);
  struct stat info;
  REQUIRE(fstat(file.get(), &info) == 0);
  CHECK(has_mapped(getpid(), info.st_dev, info.st_ino) == Mapped::kNo);
  void* at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  REQUIRE(at != MAP_FAILED);
  CHECK(has_mapped(getpid(), info.st_dev, info.st_ino) == Mapped::kYes);
  munmap(at, 4096);
}

TEST_CASE("no maps, or nobody's, are not taken for an exec") {
  CHECK(find_mapping("", makedev(0, 1), 5) == Mapped::kUnknown);
  const std::string maps =
      "7f00-7f01 rw-s 00000000 00:01 15 /memfd:shp-arena (deleted)\n";
  CHECK(find_mapping(maps, makedev(0, 1), 15) == Mapped::kYes);
  CHECK(find_mapping(maps, makedev(0, 1), 5) == Mapped::kNo);
  CHECK(find_mapping(maps, makedev(0, 2), 15) == Mapped::kNo);
  const pid_t gone = in_child([] { _exit(0); });
  waitpid(gone, nullptr, 0);
  CHECK(has_mapped(gone, makedev(0, 1), 15) == Mapped::kUnknown);
}

}  // namespace
}  // namespace shp
