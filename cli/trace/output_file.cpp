#include "cli/trace/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

namespace shp {
namespace {

// What open(2) would give a new file; the mask can only be read by setting it,
// which other threads would see, so it comes from /proc.
mode_t default_mode() {
  unsigned mask = 022;
  std::FILE* status = std::fopen("/proc/self/status", "re");
  if (status == nullptr) {
    return 0666 & ~mask;
  }
  char line[128];
  while (std::fgets(line, sizeof(line), status) != nullptr) {
    if (std::sscanf(line, "Umask: %o", &mask) == 1) {
      break;
    }
  }
  std::fclose(status);
  return 0666 & ~mask;
}

Status sync_directory(const std::string& directory) {
  const UniqueFd fd(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot fsync a directory (EINVAL); they need no help.
  if (fd && fsync(fd.get()) != 0 && errno == EIO) {
    return errno_error(directory, errno);
  }
  return {};
}

}  // namespace

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "."
                                    : path.substr(0, slash == 0 ? 1 : slash);
}

std::string file_name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

OutputFile::OutputFile(std::string path, std::string temporary, UniqueFd fd)
    : path_(std::move(path)),
      temporary_(std::move(temporary)),
      fd_(std::move(fd)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
  }
}

void remove_leftover(const std::string& path) {
  constexpr time_t kSettleSeconds = 10;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status;
  if (fd && fstat(fd.get(), &status) == 0 &&
      std::time(nullptr) - status.st_mtime > kSettleSeconds &&
      flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
    unlink(path.c_str());
  }
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  std::string temporary =
      directory_of(path) + "/" + std::string(kTemporaryPrefix) + "XXXXXX.tmp";
  UniqueFd fd(mkostemps(temporary.data(), 4, O_CLOEXEC));
  if (!fd) {
    return errno_error(directory_of(path), errno);
  }
  // Without locks (some network file systems) leftovers just stay.
  static_cast<void>(flock(fd.get(), LOCK_EX | LOCK_NB));
  OutputFile file(path, std::move(temporary), std::move(fd));
  if (fchmod(file.fd(), default_mode()) != 0) {
    return errno_error(path, errno);
  }
  return file;
}

Status OutputFile::copy_mode(int fd) {
  struct stat like;
  if (fstat(fd, &like) != 0) {
    return errno_error(path_, errno);
  }
  // Only root may give a file away; the mode comes second, since a change of
  // owner clears set-id bits.
  if (fchown(fd_.get(), like.st_uid, like.st_gid) != 0 &&
      fchown(fd_.get(), static_cast<uid_t>(-1), like.st_gid) != 0) {
    errno = 0;
  }
  if (fchmod(fd_.get(), like.st_mode & 07777) != 0) {
    return errno_error(path_, errno);
  }
  return {};
}

Status OutputFile::commit() {
  if (fsync(fd_.get()) != 0) {
    return errno_error(path_, errno);
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return errno_error(path_, errno);
  }
  temporary_.clear();
  return sync_directory(directory_of(path_));
}

}  // namespace shp
