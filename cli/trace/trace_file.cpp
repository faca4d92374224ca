#include "cli/trace/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "cli/trace/ahead_source.h"
#include "cli/trace/prefix_copy.h"

namespace shp {
namespace {

// Before this the file has to stay as it is, byte for byte.
uint64_t first_change(const TraceScan& scan) {
  return scan.own.empty() ? scan.insert_at
                          : std::min(scan.insert_at, scan.own.front().begin);
}

// Both tell the copy what stays as it is.
class CopiedSource : public PlainSource {
 public:
  CopiedSource(int fd, PrefixCopy* copy) : PlainSource(fd), copy_(copy) {}
  void settle(uint64_t offset) override {
    if (copy_ != nullptr) {
      copy_->allow(offset);
    }
  }

 private:
  PrefixCopy* copy_;
};

class CopiedGzSource : public GzSource {
 public:
  CopiedGzSource(int fd, PrefixCopy* copy) : GzSource(fd), copy_(copy) {}
  void settle(uint64_t offset) override {
    GzSource::settle(offset);
    const BlockStart* start = last_start_before(offset);
    if (copy_ != nullptr && start != nullptr) {
      copy_->allow(start->in_bits / 8);
    }
  }

 private:
  PrefixCopy* copy_;
};

Result<TraceScan> scan_gz(int fd, PrefixCopy* copy, ScannedTrace& out) {
  CopiedGzSource source(fd, copy);
  Result<TraceScan> scan = [&source] {
    AheadSource ahead(source);
    return scan_trace(ahead);
  }();
  if (scan && scan->not_a_trace.empty()) {
    const BlockStart* start = source.last_start_before(first_change(*scan));
    out.start = start == nullptr ? std::nullopt : std::optional(*start);
  }
  return scan;
}

Result<FileIdentity> identity_of(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return errno_error("fstat", errno);
  }
  return FileIdentity::of(status);
}

}  // namespace

FileIdentity FileIdentity::of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

bool FileIdentity::operator==(const FileIdentity& other) const {
  return device == other.device && inode == other.inode &&
         bytes == other.bytes && changed.tv_sec == other.changed.tv_sec &&
         changed.tv_nsec == other.changed.tv_nsec;
}

uint64_t unchanged_bytes(const ScannedTrace& trace) {
  return trace.gz ? trace.start->in_bits / 8 : first_change(trace.scan);
}

Result<ScannedTrace> scan_file(int fd, PrefixCopy* copy) {
  ScannedTrace out;
  const Result<FileIdentity> identity = identity_of(fd);
  if (!identity) {
    return tl::unexpected<Error>(identity.error());
  }
  out.identity = *identity;
  out.gz = is_gzip(fd);
  CopiedSource plain(fd, copy);
  Result<TraceScan> scan = out.gz ? scan_gz(fd, copy, out) : scan_trace(plain);
  if (!scan) {
    return tl::unexpected<Error>(scan.error());
  }
  out.scan = std::move(*scan);
  const Result<FileIdentity> after = identity_of(fd);
  if (!after || !(*after == out.identity)) {
    return error("changed while it was read");
  }
  return out;
}

Result<UniqueFd> open_for_reading(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    return errno_error(path, errno);
  }
  return fd;
}

// Another run may have put a new file in this one's place while we waited for
// the lock of the old one.
Result<UniqueFd> open_locked(const std::string& path) {
  while (true) {
    Result<UniqueFd> fd = open_for_reading(path);
    if (!fd) {
      return fd;
    }
    // Where a file system has no locks, runs at once may do work twice.
    while (flock(fd->get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat opened;
    struct stat named;
    if (fstat(fd->get(), &opened) != 0 || lstat(path.c_str(), &named) != 0) {
      return errno_error(path, errno);
    }
    if (opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) {
      return fd;
    }
  }
}

}  // namespace shp
