#include "cli/trace/byte_source.h"

#include <unistd.h>

#include <cerrno>

namespace shp {

Result<size_t> read_at(int fd, char* into, size_t size, uint64_t offset) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(fd, into + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return errno_error("byte " + std::to_string(offset + done), errno);
    }
    if (got == 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

Result<size_t> PlainSource::read(char* into, size_t size) {
  Result<size_t> got = read_at(fd_, into, size, offset_);
  offset_ += got.value_or(0);
  return got;
}

}  // namespace shp
