#include "cli/trace/span_sorter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "cli/trace/byte_source.h"
#include "cli/trace/text_sink.h"

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
  const Status written = write_fully(fd, bytes);
  return written ? written
                 : errno_error("spilling spans", written.error().errno_value);
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

// The file of runs, and the thread that writes the newest.
struct SpanSorter::Spill {
  ~Spill() {
    if (thread.joinable()) {
      thread.join();
    }
  }

  Status write_run();

  UniqueFd file;
  uint64_t bytes = 0;
  std::vector<Run> runs;
  Batch batch;  // the thread's
  Status state;
  std::thread thread;
};

Status SpanSorter::Spill::write_run() {
  batch.sort();
  const uint64_t begin = bytes;
  std::string out;
  for (size_t i = 0; i < batch.keys.size(); ++i) {
    const SortedSpan span = batch.span_at(batch.keys[i]);
    const RunHeader header{span.tid,
                           span.start_ns,
                           span.end_ns,
                           {static_cast<uint32_t>(span.name.size()),
                            static_cast<uint32_t>(span.args.size())}};
    out.append(reinterpret_cast<const char*>(&header), sizeof(header));
    out.append(span.name);
    out.append(span.args);
    if (out.size() >= (1U << 18) || i + 1 == batch.keys.size()) {
      const Status written = write_all(file.get(), out);
      if (!written) {
        return written;
      }
      bytes += out.size();
      out.clear();
    }
  }
  runs.push_back({begin, bytes});
  batch.keys.clear();
  batch.text.clear();
  return {};
}

SpanSorter::SpanSorter(std::string spill_directory, size_t memory_bytes)
    : spill_directory_(std::move(spill_directory)),
      batch_bytes_(memory_bytes / 2),
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

void SpanSorter::Batch::reserve(size_t bytes) {
  text.reserve(bytes / 2);
  keys.reserve(bytes / 2 / sizeof(Key));
}

void SpanSorter::Batch::sort() {
  if (!std::is_sorted(keys.begin(), keys.end(), before)) {
    std::sort(keys.begin(), keys.end(), before);
  }
}

SortedSpan SpanSorter::Batch::span_at(const Key& key) const {
  TextSizes sizes;
  const char* at = text.data() + key.offset;
  std::memcpy(&sizes, at, sizeof(sizes));
  at += sizeof(sizes);
  return {key.tid,
          key.start_ns,
          key.end_ns,
          {at, sizes.name},
          {at + sizes.name, sizes.args}};
}

Status SpanSorter::add(const SortedSpan& span) {
  const size_t size =
      sizeof(Key) + sizeof(TextSizes) + span.name.size() + span.args.size();
  if (!batch_.keys.empty() && batch_.used() + size > batch_bytes_) {
    const Status spilled = start_spill();
    if (!spilled) {
      return spilled;
    }
  }
  if (batch_.text.capacity() == 0) {
    batch_.reserve(batch_bytes_);
  }
  batch_.keys.push_back(
      {span.tid, span.start_ns, span.end_ns, batch_.text.size()});
  const TextSizes sizes{static_cast<uint32_t>(span.name.size()),
                        static_cast<uint32_t>(span.args.size())};
  batch_.text.append(reinterpret_cast<const char*>(&sizes), sizeof(sizes));
  batch_.text.append(span.name);
  batch_.text.append(span.args);
  return {};
}

Status SpanSorter::join_spill() {
  if (spill_->thread.joinable()) {
    spill_->thread.join();
  }
  return spill_->state;
}

// The batch becomes a run, behind our back; its predecessor is done.
Status SpanSorter::start_spill() {
  if (!spill_) {
    Result<UniqueFd> opened = open_unlinked(spill_directory_);
    if (!opened) {
      return tl::unexpected<Error>(opened.error());
    }
    spill_ = std::make_unique<Spill>();
    spill_->file = std::move(*opened);
  }
  const Status joined = join_spill();
  if (!joined) {
    return joined;
  }
  std::swap(batch_, spill_->batch);
  spill_->thread = std::thread(
      [spill = spill_.get()] { spill->state = spill->write_run(); });
  return {};
}

Status SpanSorter::finish() {
  if (!spill_) {
    batch_.sort();
    return {};
  }
  Status state = batch_.keys.empty() ? Status{} : start_spill();
  state = state ? join_spill() : state;
  return state ? open_runs() : state;
}

Status SpanSorter::open_runs() {
  batch_ = {};
  spill_->batch = {};
  const std::vector<Run>& runs = spill_->runs;
  const size_t share = std::max<size_t>(memory_bytes_ / runs.size(), 4096);
  for (const Run& run : runs) {
    readers_.push_back(
        std::make_unique<RunReader>(spill_->file.get(),
                                    run.begin,
                                    run.end,
                                    std::min<size_t>(share, 1U << 18)));
  }
  return {};
}

Result<bool> SpanSorter::next(SortedSpan& span) {
  if (spill_) {
    return next_of_runs(span);
  }
  if (next_key_ == batch_.keys.size()) {
    return false;
  }
  span = batch_.span_at(batch_.keys[next_key_++]);
  return true;
}

// Equals keep the order of their runs.
bool SpanSorter::comes_first(size_t a, size_t b) const {
  const SortedSpan& left = readers_[a]->span();
  const SortedSpan& right = readers_[b]->span();
  if (span_before(left, right)) {
    return true;
  }
  return !span_before(right, left) && a < b;
}

// Moves the first of the heap to where it belongs. Mostly it stays: runs follow
// each other in time.
void SpanSorter::sink_first() {
  size_t at = 0;
  while (true) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) {
      return;
    }
    if (child + 1 < heap_.size() &&
        comes_first(heap_[child + 1], heap_[child])) {
      ++child;
    }
    if (!comes_first(heap_[child], heap_[at])) {
      return;
    }
    std::swap(heap_[at], heap_[child]);
    at = child;
  }
}

// The span that was given last is still in its reader, which therefore moves on
// only now.
Result<bool> SpanSorter::next_of_runs(SortedSpan& span) {
  if (!primed_) {
    primed_ = true;
    for (size_t i = 0; i < readers_.size(); ++i) {
      const Result<bool> moved = readers_[i]->advance();
      if (!moved) {
        return moved;
      }
      heap_.push_back(i);
    }
    // In order, which is a heap.
    std::sort(heap_.begin(), heap_.end(), [this](size_t a, size_t b) {
      return comes_first(a, b);
    });
  } else if (!heap_.empty()) {
    const Result<bool> moved = readers_[heap_.front()]->advance();
    if (!moved) {
      return moved;
    }
    if (!*moved) {
      heap_.front() = heap_.back();
      heap_.pop_back();
    }
    sink_first();
  }
  if (heap_.empty()) {
    return false;
  }
  span = readers_[heap_.front()]->span();
  return true;
}

}  // namespace shp
