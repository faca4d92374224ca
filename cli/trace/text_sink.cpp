#include "cli/trace/text_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/base/check.h"

namespace shp {
namespace {

constexpr size_t kBufferBytes = 256U << 10;
constexpr int64_t kBeginBytes = 8 << 20;

// Spans are short repeated texts: higher levels take several times as long for
// a few per cent.
constexpr int kLevel = 4;
constexpr int kGzipFormat = MAX_WBITS + 16;

}  // namespace

Status write_fully(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put < 0) {
      return errno_error("writing", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

FdSink::FdSink(int fd)
    : fd_(fd), offset_(lseek(fd, 0, SEEK_CUR)), begun_(offset_) {
  buffer_.reserve(kBufferBytes);
}

// The disk starts on what is written now and then, so that little is left for a
// last fsync.
Status FdSink::put(std::string_view text) {
  const Status written = write_fully(fd_, text);
  if (offset_ >= 0) {
    offset_ += static_cast<int64_t>(text.size());
  }
  if (offset_ - begun_ >= kBeginBytes) {
    sync_file_range(fd_, begun_, offset_ - begun_, SYNC_FILE_RANGE_WRITE);
    begun_ = offset_;
  }
  return written;
}

Status FdSink::write(std::string_view text) {
  if (buffer_.size() + text.size() > kBufferBytes) {
    const Status flushed = finish();
    if (!flushed || text.size() > kBufferBytes) {
      return flushed ? put(text) : flushed;
    }
  }
  buffer_ += text;
  return {};
}

Status FdSink::finish() {
  const Status written = put(buffer_);
  buffer_.clear();
  return written;
}

GzSink::GzSink(int fd) : fd_(fd), out_(kBufferBytes) {
  SHP_CHECK(
      deflateInit2(
          &stream_, kLevel, Z_DEFLATED, kGzipFormat, 9, Z_DEFAULT_STRATEGY) ==
      Z_OK);
}

GzSink::~GzSink() {
  deflateEnd(&stream_);
}

Status GzSink::deflate_some(std::string_view text, int flush) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream_.avail_in = static_cast<unsigned>(text.size());
  do {
    stream_.next_out = out_.data();
    stream_.avail_out = static_cast<unsigned>(out_.size());
    deflate(&stream_, flush);
    const size_t made = out_.size() - stream_.avail_out;
    const Status written =
        write_fully(fd_, {reinterpret_cast<const char*>(out_.data()), made});
    if (!written) {
      return written;
    }
  } while (stream_.avail_out == 0);
  return {};
}

Status GzSink::write(std::string_view text) {
  return deflate_some(text, Z_NO_FLUSH);
}

Status GzSink::finish() {
  return deflate_some({}, Z_FINISH);
}

}  // namespace shp
