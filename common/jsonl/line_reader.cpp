#include "common/jsonl/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "common/jsonl/json_check.h"
#include "common/jsonl/mark_line.h"
#include "common/jsonl/metadata_reader.h"
#include "common/jsonl/span_check.h"
#include "common/jsonl/span_format.h"
#include "common/jsonl/span_line.h"

namespace shp {

namespace {

constexpr size_t kReadBytes = 1U << 18;
constexpr size_t kMaxKept = 1U << 20;  // threads, clocks, open spans

}  // namespace

LineReader::LineReader(UniqueFd fd, std::string name)
    : fd_(std::move(fd)),
      name_(std::move(name)),
      memo_(std::make_unique<ThreadMemo>()) {}

LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

tl::unexpected<Error> LineReader::fail(std::string_view what) const {
  return error(name_ + ": line " + std::to_string(line_) + ": " +
               std::string(what));
}

Result<bool> LineReader::next_line(std::string_view& line) {
  size_t searched = begin_;
  ++line_;
  while (true) {
    const void* newline =
        std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (newline != nullptr) {
      const char* start = buffer_.data() + begin_;
      const auto length = static_cast<const char*>(newline) - start;
      line = {start, static_cast<size_t>(length)};
      begin_ += line.size() + 1;
      return true;
    }
    if (at_eof_) {
      line = {buffer_.data() + begin_, end_ - begin_};
      begin_ = end_;
      return !line.empty();
    }
    if (end_ - begin_ > kMaxLineBytes) {
      return fail("longer than 16 MiB");
    }
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    searched = end_;
    buffer_.resize(std::max(buffer_.size(), end_ + kReadBytes));
    const ssize_t got =
        read(fd_.get(), buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return errno_error(name_, errno);
    }
    at_eof_ = got == 0;
    end_ += static_cast<size_t>(got);
    bytes_read_ += static_cast<uint64_t>(got);
  }
}

Status LineReader::read_metadata() {
  std::string_view line;
  const Result<bool> got = next_line(line);
  if (!got) {
    return tl::unexpected<Error>(got.error());
  }
  if (!*got) {
    return error(name_ + ": is empty");
  }
  if (!is_json(line) || line_type(line) != "metadata") {
    return fail("is not a host file's metadata");
  }
  metadata_ = std::make_unique<HostMetadata>();
  const std::string problem = parse_metadata(line, *metadata_);
  if (!problem.empty()) {
    return fail(problem);
  }
  check_ = std::make_unique<SpanCheck>(*metadata_);
  return {};
}

Status LineReader::take_other_line(std::string_view line) {
  const std::string type = line_type(line);
  if (type.empty()) {
    return {};
  }
  const JsonMembers members(line);
  if (type == "metadata") {
    return fail("second metadata line");
  }
  if (type == "thread" && thread_names_.size() < kMaxKept) {
    const std::optional<int64_t> tid = members.integer("tid");
    if (tid) {
      thread_names_[*tid] = members.string("name");
    }
  } else if (type == "clock" && clocks_.size() < kMaxKept) {
    const auto monotonic = members.integer("monotonic_ns");
    const auto realtime = members.integer("realtime_ns");
    if (!monotonic || !realtime) {
      return fail("clock line without monotonic_ns and realtime_ns");
    }
    const HostClock clock{*monotonic,
                          *realtime,
                          members.integer("uncertainty_ns").value_or(0),
                          members.integer("monotonic_raw_ns")};
    if (!is_time(*monotonic) || !is_time(*realtime) ||
        !is_time(clock.uncertainty_ns) || clock.uncertainty_ns < 0 ||
        !is_time(clock.monotonic_raw_ns.value_or(0))) {
      return fail("clock line holds no times in ns");
    }
    clocks_.push_back(clock);
  } else if (type == "open_span" && open_spans_.size() < kMaxKept) {
    const auto tid = members.integer("tid");
    const auto start = members.integer("start_ns");
    const std::string name = members.string("name");
    if (tid && start && !name.empty()) {
      open_spans_.push_back({*tid, *start, json_quote(name)});
    }
  }
  return {};
}

Result<bool> LineReader::take_line(std::string_view line, HostSpan& span) {
  SpanLine parsed;
  if (!parse_usual_span(line, parsed, *memo_)) {
    if (!is_json(line)) {
      return fail(at_eof_ && begin_ == end_ ? "is not whole JSON (cut off?)"
                                            : "is not JSON");
    }
    const std::string type = line_type(line);
    span.item = mark_item(type);
    if (span.item != HostItem::kSpan) {
      return take_mark(line, span);
    }
    if (type != "span") {
      const Status taken = take_other_line(line);
      return taken ? Result<bool>(false)
                   : Result<bool>(tl::unexpected<Error>(taken.error()));
    }
    const std::string problem = parse_any_span(line, parsed);
    if (!problem.empty()) {
      return fail(problem);
    }
  }
  const std::string problem = check_->take(parsed.span, parsed.pid);
  if (!problem.empty()) {
    return fail(problem);
  }
  span = parsed.span;
  return !marks_;
}

Result<bool> LineReader::take_mark(std::string_view line, HostSpan& mark) {
  int64_t pid = 0;
  std::string problem = parse_mark(line, mark, pid);
  problem = problem.empty() ? check_->take_mark(mark, pid) : problem;
  return problem.empty() ? Result<bool>(marks_) : fail(problem);
}

Result<bool> LineReader::next(HostSpan& span) {
  while (true) {
    std::string_view line;
    const Result<bool> got = next_line(line);
    if (!got) {
      return got;
    }
    if (!*got) {
      const std::string problem = check_->end();
      return problem.empty() ? Result<bool>(false)
                             : error(name_ + ": " + problem);
    }
    const Result<bool> taken = take_line(line, span);
    if (!taken || *taken) {
      return taken;
    }
  }
}

Result<LineReader> open_host_file(UniqueFd fd, std::string name) {
  LineReader reader(std::move(fd), std::move(name));
  const Status read = reader.read_metadata();
  if (!read) {
    return tl::unexpected<Error>(read.error());
  }
  return reader;
}

Result<LineReader> open_host_file(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return errno_error(path, errno);
  }
  return open_host_file(std::move(fd), path);
}

}  // namespace shp
