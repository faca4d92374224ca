#include "cli/stats/live_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/jsonl/json_check.h"
#include "common/jsonl/mark_line.h"
#include "common/jsonl/span_format.h"
#include "common/jsonl/span_line.h"

namespace shp {
namespace {

constexpr size_t kPiece = 1U << 20;

Result<int64_t> size_of(int fd) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) {
    return errno_error("fstat", errno);
  }
  return facts.st_size;
}

// False for a line that is neither a span nor a mark.
bool parse_item(std::string_view line, ThreadMemo& memo, SpanLine& out) {
  if (parse_usual_span(line, out, memo)) {
    out.span.item = HostItem::kSpan;
    return true;
  }
  if (!is_json(line)) {
    return false;
  }
  out.span.item = mark_item(line_type(line));
  return out.span.item != HostItem::kSpan &&
         parse_mark(line, out.span, out.pid).empty();
}

}  // namespace

Result<LiveFile> LiveFile::open(const std::string& path, From from) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    return errno_error(path, errno);
  }
  const Result<int64_t> size = size_of(fd.get());
  if (!size) {
    return tl::unexpected<Error>(size.error());
  }
  LiveFile file(std::move(fd));
  if (from == From::kEnd && *size > 0) {
    // One byte earlier: it says whether a line ends there.
    file.offset_ = *size - 1;
    file.in_line_ = true;
  }
  return file;
}

void LiveFile::take_lines(const Take& take) {
  ThreadMemo memo;
  size_t begin = 0;
  size_t end = 0;
  while ((end = rest_.find('\n', begin)) != std::string::npos) {
    SpanLine parsed;
    const std::string_view line(rest_.data() + begin, end - begin);
    if (!in_line_ && parse_item(line, memo, parsed)) {
      take(parsed.span);
    }
    in_line_ = false;
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() > kMaxLineBytes) {
    rest_.clear();
    in_line_ = true;
  }
}

// A daemon that takes over cuts the file back to what it knows to be on disk.
Status LiveFile::follow_cut() {
  const Result<int64_t> size = size_of(fd_.get());
  if (!size) {
    return tl::unexpected<Error>(size.error());
  }
  if (*size < offset_) {
    offset_ = *size;
    rest_.clear();
    in_line_ = true;
  }
  return {};
}

Status LiveFile::read(const Take& take) {
  while (true) {
    const size_t kept = rest_.size();
    rest_.resize(kept + kPiece);
    const ssize_t got = pread(fd_.get(), rest_.data() + kept, kPiece, offset_);
    rest_.resize(kept + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) {
      return errno_error("read", errno);
    }
    if (got == 0) {
      return follow_cut();
    }
    offset_ += got;
    take_lines(take);
  }
}

}  // namespace shp
