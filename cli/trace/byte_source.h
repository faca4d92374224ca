// Where a trace's bytes come from: a plain file, or a gzip file inflated as it
// is read (gz_source.h). One pass from front to back, bounded memory.
//
// For scan.*; one source belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace shp {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Puts up to `size` bytes (more than 0) at `into`; 0 at the end. The Error
  // names what is wrong and where, not the file.
  virtual Result<size_t> read(char* into, size_t size) = 0;

  // The caller will not need to restart behind `offset` of the bytes that
  // read() gave, see gz_source.h.
  virtual void settle(uint64_t offset) { static_cast<void>(offset); }
};

class PlainSource : public ByteSource {
 public:
  // `fd` stays the caller's; reading starts at offset 0 of the file.
  explicit PlainSource(int fd) : fd_(fd) {}
  Result<size_t> read(char* into, size_t size) override;

 private:
  int fd_;
  uint64_t offset_ = 0;
};

// pread() that takes EINTR and short reads; 0 at the end of the file.
Result<size_t> read_at(int fd, char* into, size_t size, uint64_t offset);

}  // namespace shp
