#include "cli/trace/span_sorter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cli/trace/byte_source.h"

namespace shp {
namespace {

// Before a span's texts, in memory and in a run.
struct TextSizes {
  uint32_t name;
  uint32_t args;
};

// A span in a run: this, then its texts.
struct RunHeader {
  int64_t tid;
  int64_t start_ns;
  int64_t end_ns;
  TextSizes sizes;
};

bool span_before(const SortedSpan& a, const SortedSpan& b) {
  if (a.tid != b.tid) {
    return a.tid < b.tid;
  }
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns
                                  : a.end_ns > b.end_ns;
}

Result<UniqueFd> open_unlinked(const std::string& directory) {
  UniqueFd fd(
      open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
  if (fd) {
    return fd;
  }
  // A file system without O_TMPFILE (NFS, some FUSE).
  std::string path = directory + "/.shp-spill-XXXXXX";
  fd.reset(mkostemp(path.data(), O_CLOEXEC));
  if (!fd) {
    return errno_error(directory, errno);
  }
  unlink(path.c_str());
  return fd;
}

Status write_all(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = write(fd, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put < 0) {
      return errno_error("spilling spans", errno);
    }
    done += static_cast<size_t>(put);
  }
  return {};
}

}  // namespace

// One sorted run of the spill file, read through a buffer.
class RunReader {
 public:
  RunReader(int fd, uint64_t begin, uint64_t end, size_t buffer_bytes)
      : fd_(fd), offset_(begin), end_(end), buffer_bytes_(buffer_bytes) {}

  const SortedSpan& span() const { return span_; }

  // False at the end of the run.
  Result<bool> advance() {
    at_ += size_;
    size_ = 0;
    if (at_ == buffer_.size() && offset_ == end_) {
      return false;
    }
    RunHeader header;
    Status have = need(sizeof(header));
    if (have) {
      std::memcpy(&header, buffer_.data() + at_, sizeof(header));
      size_ = sizeof(header) + header.sizes.name + header.sizes.args;
      have = need(size_);
    }
    if (!have) {
      return tl::unexpected<Error>(have.error());
    }
    const char* texts = buffer_.data() + at_ + sizeof(header);
    span_ = {header.tid,
             header.start_ns,
             header.end_ns,
             {texts, header.sizes.name},
             {texts + header.sizes.name, header.sizes.args}};
    return true;
  }

 private:
  // Afterwards `bytes` of them lie at at_.
  Status need(size_t bytes) {
    if (buffer_.size() - at_ >= bytes) {
      return {};
    }
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t have = buffer_.size();
    const uint64_t room = std::max(buffer_bytes_, bytes) - have;
    const size_t more = static_cast<size_t>(std::min(room, end_ - offset_));
    buffer_.resize(have + more);
    const Result<size_t> got =
        read_at(fd_, buffer_.data() + have, more, offset_);
    if (!got || *got != more || have + more < bytes) {
      return error("reading spilled spans: short read");
    }
    offset_ += more;
    return {};
  }

  int fd_;
  uint64_t offset_;
  uint64_t end_;
  size_t buffer_bytes_;
  std::string buffer_;
  size_t at_ = 0;
  size_t size_ = 0;  // of the span at at_
  SortedSpan span_;
};

SpanSorter::SpanSorter(std::string spill_directory, size_t memory_bytes)
    : spill_directory_(std::move(spill_directory)),
      memory_bytes_(memory_bytes) {}
SpanSorter::~SpanSorter() = default;
SpanSorter::SpanSorter(SpanSorter&&) noexcept = default;

bool SpanSorter::before(const Key& a, const Key& b) {
  if (a.tid != b.tid) {
    return a.tid < b.tid;
  }
  if (a.start_ns != b.start_ns) {
    return a.start_ns < b.start_ns;
  }
  return a.end_ns != b.end_ns ? a.end_ns > b.end_ns : a.offset < b.offset;
}

Status SpanSorter::add(const SortedSpan& span) {
  const size_t size =
      sizeof(Key) + sizeof(TextSizes) + span.name.size() + span.args.size();
  const size_t used = keys_.size() * sizeof(Key) + text_.size();
  if (!keys_.empty() && used + size > memory_bytes_) {
    const Status spilled = spill();
    if (!spilled) {
      return spilled;
    }
  }
  if (text_.capacity() == 0) {
    text_.reserve(memory_bytes_ / 2);
    keys_.reserve(memory_bytes_ / 2 / sizeof(Key));
  }
  keys_.push_back({span.tid, span.start_ns, span.end_ns, text_.size()});
  const TextSizes sizes{static_cast<uint32_t>(span.name.size()),
                        static_cast<uint32_t>(span.args.size())};
  text_.append(reinterpret_cast<const char*>(&sizes), sizeof(sizes));
  text_.append(span.name);
  text_.append(span.args);
  return {};
}

void SpanSorter::sort_keys() {
  if (!std::is_sorted(keys_.begin(), keys_.end(), before)) {
    std::sort(keys_.begin(), keys_.end(), before);
  }
}

SortedSpan SpanSorter::span_at(const Key& key) const {
  TextSizes sizes;
  const char* at = text_.data() + key.offset;
  std::memcpy(&sizes, at, sizeof(sizes));
  at += sizeof(sizes);
  return {key.tid,
          key.start_ns,
          key.end_ns,
          {at, sizes.name},
          {at + sizes.name, sizes.args}};
}

Status SpanSorter::spill() {
  if (!file_) {
    Result<UniqueFd> opened = open_unlinked(spill_directory_);
    if (!opened) {
      return tl::unexpected<Error>(opened.error());
    }
    file_ = std::move(*opened);
  }
  sort_keys();
  const uint64_t begin = file_bytes_;
  std::string out;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const SortedSpan span = span_at(keys_[i]);
    const RunHeader header{span.tid,
                           span.start_ns,
                           span.end_ns,
                           {static_cast<uint32_t>(span.name.size()),
                            static_cast<uint32_t>(span.args.size())}};
    out.append(reinterpret_cast<const char*>(&header), sizeof(header));
    out.append(span.name);
    out.append(span.args);
    if (out.size() >= (1U << 18) || i + 1 == keys_.size()) {
      const Status written = write_all(file_.get(), out);
      if (!written) {
        return written;
      }
      file_bytes_ += out.size();
      out.clear();
    }
  }
  runs_.push_back({begin, file_bytes_});
  keys_.clear();
  text_.clear();
  return {};
}

Status SpanSorter::finish() {
  if (runs_.empty()) {
    sort_keys();
    return {};
  }
  const Status spilled = keys_.empty() ? Status{} : spill();
  if (!spilled) {
    return spilled;
  }
  keys_ = {};
  text_ = {};
  const size_t share = std::max<size_t>(memory_bytes_ / runs_.size(), 4096);
  for (const Run& run : runs_) {
    readers_.push_back(std::make_unique<RunReader>(
        file_.get(), run.begin, run.end, std::min<size_t>(share, 1U << 18)));
  }
  return {};
}

Result<bool> SpanSorter::next(SortedSpan& span) {
  if (!runs_.empty()) {
    return next_of_runs(span);
  }
  if (next_key_ == keys_.size()) {
    return false;
  }
  span = span_at(keys_[next_key_++]);
  return true;
}

// The span that was given last is still in its reader, which therefore moves on
// only now.
Result<bool> SpanSorter::next_of_runs(SortedSpan& span) {
  // A heap's front is its greatest: "greater" here is the span that comes
  // first; equals keep the order of their runs.
  const auto comes_later = [this](size_t a, size_t b) {
    const SortedSpan& left = readers_[a]->span();
    const SortedSpan& right = readers_[b]->span();
    if (span_before(left, right) || span_before(right, left)) {
      return span_before(right, left);
    }
    return a > b;
  };
  std::vector<size_t> moving;
  if (!primed_) {
    primed_ = true;
    for (size_t i = 0; i < readers_.size(); ++i) {
      moving.push_back(i);
    }
  } else if (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), comes_later);
    moving.push_back(heap_.back());
    heap_.pop_back();
  }
  for (const size_t reader : moving) {
    const Result<bool> moved = readers_[reader]->advance();
    if (!moved) {
      return moved;
    }
    if (*moved) {
      heap_.push_back(reader);
      std::push_heap(heap_.begin(), heap_.end(), comes_later);
    }
  }
  if (heap_.empty()) {
    return false;
  }
  span = readers_[heap_.front()]->span();
  return true;
}

}  // namespace shp
