#include "common/jsonl/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "common/jsonl/json_check.h"
#include "common/jsonl/span_format.h"
#include "common/jsonl/span_line.h"

namespace shp {

// Ids count 1, 2, 3 … in practice, which costs one comparison. What is out of
// order goes into ranges that grow together.
class SpanIds {
 public:
  // False when `id` was there before.
  bool add(int64_t id) {
    if (id == next_) {
      ++next_;
      return ranges_.empty() || add_range(id);
    }
    if (ranges_.empty() && next_ > 1) {
      ranges_.emplace(1, next_ - 1);
    }
    next_ = id + 1;
    return add_range(id);
  }

  bool too_scattered() const { return ranges_.size() > kMaxRanges; }

 private:
  static constexpr size_t kMaxRanges = 1U << 20;

  bool add_range(int64_t id) {
    auto after = ranges_.upper_bound(id);
    if (after != ranges_.begin()) {
      const auto before = std::prev(after);
      if (before->second >= id) {
        return false;
      }
      if (before->second == id - 1) {
        before->second = id;
        if (after != ranges_.end() && after->first == id + 1) {
          before->second = after->second;
          ranges_.erase(after);
        }
        return true;
      }
    }
    int64_t last = id;
    if (after != ranges_.end() && after->first == id + 1) {
      last = after->second;
      ranges_.erase(after);
    }
    ranges_.emplace(id, last);
    return true;
  }

  int64_t next_ = 1;
  std::map<int64_t, int64_t> ranges_;  // first id to last id
};

namespace {

constexpr size_t kReadBytes = 1U << 18;
constexpr size_t kMaxKept = 1U << 20;  // threads, clocks, open spans

// Reads members of the metadata object and remembers the first that is wrong.
class MetadataReader {
 public:
  explicit MetadataReader(std::string_view line) {
    for_each_member(line, [this](std::string_view key, std::string_view value) {
      members_[std::string(key)] = value;
      return true;
    });
  }

  const std::string& problem() const { return problem_; }

  std::optional<int64_t> integer(const char* key) const {
    const auto found = members_.find(key);
    return found == members_.end() ? std::nullopt : json_int(found->second);
  }

  int64_t need_integer(const char* key) {
    const std::optional<int64_t> value = integer(key);
    if (!value) {
      complain(key, "is not an integer");
    }
    return value.value_or(0);
  }

  int64_t need_count(const char* key) {
    const int64_t value = need_integer(key);
    if (value < 0) {
      complain(key, "is negative");
    }
    return value;
  }

  std::string string(const char* key) const {
    const auto found = members_.find(key);
    const bool is_string =
        found != members_.end() && found->second.front() == '"';
    return is_string ? json_unescape(found->second) : std::string();
  }

  std::string need_string(const char* key) {
    const auto found = members_.find(key);
    if (found == members_.end() || found->second.front() != '"') {
      complain(key, "is not a string");
    }
    return string(key);
  }

  bool need_bool(const char* key) {
    const auto found = members_.find(key);
    if (found == members_.end() ||
        (found->second != "true" && found->second != "false")) {
      complain(key, "is not true or false");
      return false;
    }
    return found->second == "true";
  }

  std::vector<std::string> strings(const char* key) const {
    std::vector<std::string> out;
    const auto found = members_.find(key);
    if (found == members_.end() || found->second.front() != '[') {
      return out;
    }
    const char* end = found->second.data() + found->second.size();
    const char* at = skip_json_space(found->second.data() + 1, end);
    while (*at != ']') {
      const char* behind = check_json_value(at, end);
      if (*at == '"') {
        out.push_back(json_unescape({at, static_cast<size_t>(behind - at)}));
      }
      at = skip_json_space(behind, end);
      at = *at == ',' ? skip_json_space(at + 1, end) : at;
    }
    return out;
  }

  // The members of an object that are integers above 0.
  std::map<std::string, int64_t> counts(const char* key) const {
    std::map<std::string, int64_t> out;
    const auto found = members_.find(key);
    if (found == members_.end() || found->second.front() != '{') {
      return out;
    }
    const MetadataReader inner(found->second);
    for (const auto& [name, text] : inner.members_) {
      const int64_t count = json_int(text).value_or(0);
      if (count > 0) {
        out.emplace(name, count);
      }
    }
    return out;
  }

  void complain(const char* key, const char* what) {
    if (problem_.empty()) {
      const bool missing = members_.find(key) == members_.end();
      problem_ = missing ? "metadata has no \"" + std::string(key) + "\""
                         : "metadata: " + std::string(key) + " " + what;
    }
  }

 private:
  std::map<std::string, std::string_view, std::less<>> members_;
  std::string problem_;
};

// Times that no sum or difference of two of them can overflow with.
bool is_time(int64_t ns) {
  return ns >= -(1LL << 61) && ns <= (1LL << 61);
}

void check_times(const HostMetadata& metadata, MetadataReader& reader) {
  const std::pair<const char*, int64_t> times[] = {
      {"start_monotonic_ns", metadata.start_monotonic_ns},
      {"start_realtime_ns", metadata.start_realtime_ns},
      {"clock_uncertainty_ns", metadata.clock_uncertainty_ns},
      {"stop_monotonic_ns", metadata.stop_monotonic_ns},
      {"stop_realtime_ns", metadata.stop_realtime_ns},
      {"start_monotonic_raw_ns", metadata.start_monotonic_raw_ns.value_or(0)},
      {"stop_monotonic_raw_ns", metadata.stop_monotonic_raw_ns.value_or(0)},
  };
  for (const auto& [key, value] : times) {
    if (!is_time(value)) {
      reader.complain(key, "is not a time in ns");
    }
  }
}

void check_ranges(const HostMetadata& metadata, MetadataReader& reader) {
  check_times(metadata, reader);
  if (metadata.session_id.empty()) {
    reader.complain("session_id", "is empty");
  }
  if (metadata.pid <= 0) {
    reader.complain("pid", "is not positive");
  }
  if (metadata.stop_monotonic_ns < metadata.start_monotonic_ns) {
    reader.complain("stop_monotonic_ns", "is before start_monotonic_ns");
  }
}

std::string parse_metadata(std::string_view line, HostMetadata& out) {
  MetadataReader reader(line);
  if (reader.need_integer("schema_version") != kSchemaVersion) {
    reader.complain("schema_version", "is not 3");
  }
  out.session_id = reader.need_string("session_id");
  out.pid = reader.need_integer("pid");
  out.hostname = reader.need_string("hostname");
  if (reader.need_string("clock") != "monotonic") {
    reader.complain("clock", "is not \"monotonic\"");
  }
  out.start_monotonic_ns = reader.need_integer("start_monotonic_ns");
  out.start_realtime_ns = reader.need_integer("start_realtime_ns");
  out.clock_uncertainty_ns = reader.need_count("clock_uncertainty_ns");
  out.written_spans = reader.need_count("written_spans");
  out.dropped_spans = reader.need_count("dropped_spans");
  out.stop_monotonic_ns = reader.need_integer("stop_monotonic_ns");
  out.stop_realtime_ns = reader.need_integer("stop_realtime_ns");
  out.complete = reader.need_bool("complete");
  out.start_monotonic_raw_ns = reader.integer("start_monotonic_raw_ns");
  out.stop_monotonic_raw_ns = reader.integer("stop_monotonic_raw_ns");
  out.pid_namespace = reader.integer("pid_namespace");
  out.host_pid = reader.integer("host_pid");
  out.boot_id = reader.string("boot_id");
  out.end_reason = reader.string("end_reason");
  out.argv = reader.strings("argv");
  out.dropped = reader.counts("dropped");
  out.bad_args = reader.integer("bad_args").value_or(0);
  check_ranges(out, reader);
  return reader.problem();
}

// A name as a JSON string text: not empty and without NUL.
bool is_span_name(std::string_view quoted) {
  return quoted.size() > 2 && quoted.find("\\u0000") == std::string_view::npos;
}

// "\\u0000" is a backslash and five characters, no NUL: look again, exactly.
bool is_odd_span_name(std::string_view quoted) {
  return quoted.size() > 2 &&
         json_unescape(quoted).find('\0') == std::string::npos;
}

}  // namespace

LineReader::LineReader(UniqueFd fd, std::string name)
    : fd_(std::move(fd)),
      name_(std::move(name)),
      ids_(std::make_unique<SpanIds>()) {}

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
  const std::string problem = parse_metadata(line, metadata_);
  if (!problem.empty()) {
    return fail(problem);
  }
  return {};
}

Status LineReader::check_span(const HostSpan& span, int64_t pid) {
  if (span.id <= 0) {
    return fail("span id " + std::to_string(span.id) + " is not positive");
  }
  if (!ids_->add(span.id)) {
    return fail("span id " + std::to_string(span.id) + " is there twice");
  }
  if (ids_->too_scattered()) {
    return fail("span ids are too scattered");
  }
  if (pid != metadata_.pid) {
    return fail("pid " + std::to_string(pid) + " is not the metadata's " +
                std::to_string(metadata_.pid));
  }
  if (span.tid < 0) {
    return fail("tid is negative");
  }
  if (!is_span_name(span.name) && !is_odd_span_name(span.name)) {
    return fail("name is empty or holds NUL");
  }
  if (span.duration_ns < 0) {
    return fail("span ends before it starts");
  }
  if (span.start_ns < metadata_.start_monotonic_ns ||
      span.start_ns > metadata_.stop_monotonic_ns ||
      span.duration_ns > metadata_.stop_monotonic_ns - span.start_ns) {
    return fail("span is not within the session");
  }
  return {};
}

Status LineReader::take_other_line(std::string_view line) {
  const std::string type = line_type(line);
  if (type.empty()) {
    return {};
  }
  const MetadataReader members(line);
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
  if (!parse_usual_span(line, parsed)) {
    if (!is_json(line)) {
      return fail(at_eof_ && begin_ == end_ ? "is not whole JSON (cut off?)"
                                            : "is not JSON");
    }
    if (line_type(line) != "span") {
      const Status taken = take_other_line(line);
      return taken ? Result<bool>(false)
                   : Result<bool>(tl::unexpected<Error>(taken.error()));
    }
    const std::string problem = parse_any_span(line, parsed);
    if (!problem.empty()) {
      return fail(problem);
    }
  }
  const Status checked = check_span(parsed.span, parsed.pid);
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  ++spans_;
  span = parsed.span;
  return true;
}

Status LineReader::check_end() const {
  if (spans_ == metadata_.written_spans) {
    return {};
  }
  return error(name_ + ": holds " + std::to_string(spans_) +
               " spans, its metadata says " +
               std::to_string(metadata_.written_spans) +
               " (cut off or edited)");
}

Result<bool> LineReader::next(HostSpan& span) {
  while (true) {
    std::string_view line;
    const Result<bool> got = next_line(line);
    if (!got) {
      return got;
    }
    if (!*got) {
      const Status whole = check_end();
      return whole ? Result<bool>(false)
                   : Result<bool>(tl::unexpected<Error>(whole.error()));
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
