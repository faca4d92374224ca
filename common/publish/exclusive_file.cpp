#include "common/publish/exclusive_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

namespace shp {
namespace {

// Write-back is started every so many bytes, so that the last fsync has little
// left to do. It only starts the writes and waits for none.
constexpr uint64_t kWriteBackBytes = 16U << 20;

Status sync(int fd, const std::string& what) {
  while (fsync(fd) != 0) {
    // EINVAL: not every file system can sync a directory.
    if (errno == EINVAL) {
      return {};
    }
    if (errno != EINTR) {
      return errno_error(what, errno);
    }
  }
  return {};
}

// An O_PATH descriptor cannot be synced, and is all that some callers have.
Status sync_directory(int directory, const std::string& what) {
  const UniqueFd readable(
      openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A directory that may be written but not read (mode 0300) is left to itself.
  return readable ? sync(readable.get(), what) : Status{};
}

bool exists(int directory, const std::string& name) {
  struct stat info;
  return fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// File systems without hard links: FAT, exFAT, some FUSE and network ones.
// EPERM is also what protected_hardlinks says.
bool has_no_links(int errno_value) {
  return errno_value == EPERM || errno_value == EOPNOTSUPP ||
         errno_value == ENOSYS || errno_value == EMLINK ||
         errno_value == EINVAL;
}

}  // namespace

Result<ExclusiveFile> ExclusiveFile::create(int directory,
                                            std::string name,
                                            mode_t mode) {
  ExclusiveFile file;
  file.directory_ = directory;
  file.pending_ = name + ".pending";
  file.name_ = std::move(name);
  if (exists(directory, file.name_)) {
    return errno_error(file.name_, EEXIST);
  }
  file.fd_.reset(openat(directory,
                        file.pending_.c_str(),
                        O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                        mode));
  if (!file.fd_) {
    return errno_error(file.pending_, errno);
  }
  return file;
}

Result<UniqueFd> ExclusiveFile::open_pending(int directory,
                                             const std::string& name) {
  const std::string pending = name + ".pending";
  UniqueFd fd(openat(directory,
                     pending.c_str(),
                     O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) {
    return errno_error(pending, errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return errno_error(pending + ": is no file", EEXIST);
  }
  return fd;
}

Result<ExclusiveFile> ExclusiveFile::take_over(int directory,
                                               std::string name,
                                               UniqueFd fd,
                                               uint64_t bytes) {
  ExclusiveFile file;
  file.directory_ = directory;
  file.pending_ = name + ".pending";
  file.name_ = std::move(name);
  file.fd_ = std::move(fd);
  file.linked_ = file.is_ours(file.name_);
  struct stat info;
  if (fstat(file.fd_.get(), &info) != 0) {
    return errno_error(file.pending_, errno);
  }
  if (!file.linked_) {
    if (info.st_size < static_cast<off_t>(bytes)) {
      return errno_error(file.pending_ + ": was cut", ESTALE);
    }
    if (ftruncate(file.fd_.get(), static_cast<off_t>(bytes)) != 0) {
      return errno_error(file.pending_, errno);
    }
  }
  file.size_ = file.started_bytes_ = bytes;
  return file;
}

Status ExclusiveFile::append(std::string_view* bytes) {
  while (!bytes->empty()) {
    const ssize_t wrote = pwrite(
        fd_.get(), bytes->data(), bytes->size(), static_cast<off_t>(size_));
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote <= 0) {
      return errno_error(pending_, wrote < 0 ? errno : EIO);
    }
    size_ += static_cast<uint64_t>(wrote);
    bytes->remove_prefix(static_cast<size_t>(wrote));
  }
  if (size_ - started_bytes_ >= kWriteBackBytes) {
    sync_file_range(fd_.get(),
                    static_cast<off_t>(started_bytes_),
                    static_cast<off_t>(size_ - started_bytes_),
                    SYNC_FILE_RANGE_WRITE);
    started_bytes_ = size_;
  }
  return {};
}

Status ExclusiveFile::write_front(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = pwrite(fd_.get(),
                                 bytes.data() + done,
                                 bytes.size() - done,
                                 static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote <= 0) {
      return errno_error(pending_, wrote < 0 ? errno : EIO);
    }
    done += static_cast<size_t>(wrote);
  }
  return {};
}

bool ExclusiveFile::is_ours(const std::string& name) const {
  struct stat ours;
  struct stat named;
  return fstat(fd_.get(), &ours) == 0 &&
         fstatat(directory_, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

Status ExclusiveFile::link_final() {
  if (!pending_is_ours()) {
    return errno_error(pending_ + ": was moved or replaced", ESTALE);
  }
  if (linkat(directory_, pending_.c_str(), directory_, name_.c_str(), 0) == 0) {
    linked_ = true;
    return {};
  }
  if (!has_no_links(errno)) {
    return errno_error(name_, errno);
  }
  if (syscall(SYS_renameat2,
              directory_,
              pending_.c_str(),
              directory_,
              name_.c_str(),
              RENAME_NOREPLACE) != 0) {
    return errno_error(name_, errno);
  }
  linked_ = true;
  return {};
}

void ExclusiveFile::remove_pending() {
  if (pending_is_ours()) {
    unlinkat(directory_, pending_.c_str(), 0);
  }
}

Status ExclusiveFile::publish() {
  if (Status done = sync(fd_.get(), pending_); !done) {
    return done;
  }
  if (!linked_) {
    if (Status done = link_final(); !done) {
      return done;
    }
  }
  if (pending_is_ours() && unlinkat(directory_, pending_.c_str(), 0) != 0 &&
      errno != ENOENT) {
    return errno_error(pending_, errno);
  }
  return sync_directory(directory_, name_);
}

}  // namespace shp
