#include "preload/output_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>

namespace shp::recorder {
namespace {

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

Status make_directories(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') {
      continue;
    }
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0777) != 0) {
      const int why = errno;
      if (!exists(part)) {
        return errno_error(part, why);
      }
    }
  }
  return {};
}

}  // namespace

Result<UniqueFd> open_directory(const std::string& wanted, std::string& real) {
  if (wanted.empty()) {
    return errno_error("output directory", ENOENT);
  }
  UniqueFd fd(open(wanted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) {
    const Status made = make_directories(wanted);
    if (!made) {
      return tl::unexpected<Error>(made.error());
    }
    fd.reset(open(wanted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  if (!fd) {
    // A file in the directory's place is what mkdir calls it: EEXIST.
    const int why = errno;
    return errno_error(wanted, why == ENOTDIR && exists(wanted) ? EEXIST : why);
  }
  char* resolved = realpath(wanted.c_str(), nullptr);
  if (resolved == nullptr) {
    return errno_error(wanted, errno);
  }
  real = resolved;
  std::free(resolved);
  return fd;
}

}  // namespace shp::recorder
