#include "preload/process_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/unique_fd.h"

namespace shp::recorder {
namespace {
constexpr size_t kMaxArgvBytes = 4096;
}

std::string own_hostname() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) {
    return "unknown";
  }
  return name[0] != '\0' ? name : "unknown";
}

std::string own_argv() {
  const UniqueFd fd(open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::string text(kMaxArgvBytes, '\0');
  const ssize_t got =
      fd ? read(fd.get(), text.data(), text.size()) : ssize_t{0};
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  if (text.empty() || text.back() == '\0') {
    return text;
  }
  const size_t end = text.rfind('\0');
  text.resize(end == std::string::npos ? text.size() - 1 : end);
  text += '\0';
  return text;
}

uint64_t own_pid_namespace() {
  struct stat info {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

}  // namespace shp::recorder
