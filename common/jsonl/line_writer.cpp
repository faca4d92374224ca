#include "common/jsonl/line_writer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "common/jsonl/decimal.h"
#include "common/jsonl/json_text.h"

namespace shp {
namespace {

// Longest line without name and args, and what the copies below may touch past
// their ends.
constexpr size_t kLineSlack = 512;
constexpr std::string_view kSpanHead = R"({"type":"span","id":)";

char* put(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// Short texts are copied as one fixed block, which compiles to a few vector
// moves; the bytes behind are overwritten by what follows.
char* put_fixed64(char* at, const char* from, size_t size) {
  std::memcpy(at, from, 64);
  return at + size;
}

}  // namespace

ThreadText span_thread_text(int64_t pid, uint32_t tid) {
  ThreadText text;
  char* at = put(text.bytes, R"(,"pid":)");
  at = put_decimal(at, pid);
  at = put(at, R"(,"tid":)");
  at = put_decimal(at, uint64_t{tid});
  at = put(at, R"(,"name":)");
  text.size = static_cast<uint32_t>(at - text.bytes);
  return text;
}

void append_span_name_text(std::string_view name, std::string* out) {
  append_json_string(name, out);
  *out += R"(,"start_ns":)";
}

LineWriter::LineWriter(LineSink& sink)
    : sink_(sink), buffer_(new char[kBufferBytes]) {
  std::memset(id_, '0', sizeof(id_));
  id_first_ = sizeof(id_) - 1;
  id_[id_first_] = '1';
}

void LineWriter::go_on_after(uint64_t spans,
                             uint64_t instants,
                             uint64_t counters) {
  spans_ = spans;
  instants_ = instants;
  counters_ = counters;
  std::memset(id_, '0', sizeof(id_));
  char digits[24];
  const char* end = put_decimal(digits, spans + 1);
  const auto count = static_cast<size_t>(end - digits);
  id_first_ = static_cast<uint32_t>(sizeof(id_) - count);
  std::memcpy(id_ + id_first_, digits, count);
}

char* LineWriter::room(size_t bytes) {
  if (kBufferBytes - used_ < bytes) [[unlikely]] {
    flush();
  }
  return buffer_.get() + used_;
}

bool LineWriter::flush() {
  if (used_ > 0 && !failed_) {
    failed_ = !sink_.write({buffer_.get(), used_});
  }
  used_ = 0;
  return !failed_;
}

void LineWriter::count_id_up() {
  size_t digit = sizeof(id_) - 1;
  while (id_[digit] == '9') {
    id_[digit--] = '0';
  }
  ++id_[digit];
  if (digit < id_first_) {
    id_first_ = static_cast<uint32_t>(digit);
  }
  ++spans_;
}

char* LineWriter::span_head(char* at,
                            const ThreadText& thread,
                            std::string_view name_text,
                            SpanTimes times) {
  at = put(at, kSpanHead);
  const size_t digits = sizeof(id_) - id_first_;
  std::memcpy(at, id_ + id_first_, digits);
  at = put_fixed64(at + digits, thread.bytes, thread.size);
  at = put(at, name_text);
  at = put_decimal(at, static_cast<uint64_t>(times.start_ns));
  at = put(at, R"(,"duration_ns":)");
  at = put_decimal(at, static_cast<uint64_t>(times.duration_ns));
  return put(at, R"(,"args":)");
}

void LineWriter::span(const ThreadText& thread,
                      std::string_view name_text,
                      SpanTimes times) {
  if (name_text.size() > kBufferBytes - kLineSlack) [[unlikely]] {
    span(thread, name_text, times, "{}");
    return;
  }
  char* at = room(name_text.size() + kLineSlack);
  at = span_head(at, thread, name_text, times);
  take(put(at, "{}}\n"));
  count_id_up();
}

bool LineWriter::span(const ThreadText& thread,
                      std::string_view name_text,
                      SpanTimes times,
                      std::string_view args) {
  scratch_.clear();
  const bool good = append_json_object(args, &scratch_);
  if (!good) {
    scratch_ = "{}";
  }
  scratch_ += "}\n";
  if (name_text.size() <= kBufferBytes - kLineSlack) [[likely]] {
    char* at = room(name_text.size() + kLineSlack);
    take(span_head(at, thread, name_text, times));
  } else {
    // A name of up to 6 MiB when all its bytes are escaped: piece by piece.
    char* at = room(kLineSlack);
    at = put(at, kSpanHead);
    at = put(at, {id_ + id_first_, sizeof(id_) - id_first_});
    take(put_fixed64(at, thread.bytes, thread.size));
    text(name_text);
    at = room(kLineSlack);
    at = put_decimal(at, static_cast<uint64_t>(times.start_ns));
    at = put(at, R"(,"duration_ns":)");
    at = put_decimal(at, static_cast<uint64_t>(times.duration_ns));
    take(put(at, R"(,"args":)"));
  }
  text(scratch_);
  count_id_up();
  return good;
}

void LineWriter::text(std::string_view bytes) {
  while (!bytes.empty()) {
    char* at = room(1);
    const std::string_view piece = bytes.substr(0, kBufferBytes - used_);
    take(put(at, piece));
    bytes.remove_prefix(piece.size());
  }
}

// Up to its args, in scratch_. A name's text ends in what a span says next.
void LineWriter::start_mark(std::string_view type,
                            const ThreadText& thread,
                            std::string_view name_text,
                            int64_t time_ns) {
  constexpr std::string_view kSpanTime = R"("start_ns":)";
  name_text.remove_suffix(std::min(kSpanTime.size(), name_text.size()));
  scratch_ = R"({"type":")";
  scratch_ += type;
  scratch_ += '"';
  scratch_.append(thread.bytes, thread.size);
  scratch_ += name_text;
  scratch_ += R"("time_ns":)";
  scratch_ += std::to_string(time_ns);
  scratch_ += R"(,"args":)";
}

bool LineWriter::instant(const ThreadText& thread,
                         std::string_view name_text,
                         int64_t time_ns,
                         std::string_view args) {
  start_mark("instant", thread, name_text, time_ns);
  const size_t before = scratch_.size();
  const bool good = args.empty() || append_json_object(args, &scratch_);
  if (args.empty() || !good) {
    scratch_.resize(before);
    scratch_ += "{}";
  }
  scratch_ += "}\n";
  text(scratch_);
  ++instants_;
  return good;
}

void LineWriter::counter(const ThreadText& thread,
                         std::string_view name_text,
                         int64_t time_ns,
                         double value) {
  start_mark("counter", thread, name_text, time_ns);
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  scratch_ += R"({"value":)";
  scratch_.append(digits, static_cast<size_t>(end - digits));
  scratch_ += "}}\n";
  text(scratch_);
  ++counters_;
}

void LineWriter::thread(uint32_t tid, std::string_view name) {
  scratch_ = R"({"type":"thread","tid":)" + std::to_string(tid) + R"(,"name":)";
  append_json_string(name, &scratch_);
  scratch_ += "}\n";
  text(scratch_);
}

void LineWriter::clock(const ClockSample& sample) {
  scratch_ = R"({"type":"clock","monotonic_ns":)" +
             std::to_string(sample.monotonic_ns) + R"(,"realtime_ns":)" +
             std::to_string(sample.realtime_ns) + R"(,"monotonic_raw_ns":)" +
             std::to_string(sample.monotonic_raw_ns) + R"(,"ticks":)" +
             std::to_string(sample.ticks) + R"(,"uncertainty_ns":)" +
             std::to_string(sample.uncertainty_ns) + "}\n";
  text(scratch_);
}

void LineWriter::open_span(uint32_t tid,
                           std::string_view name_text,
                           int64_t start_ns) {
  scratch_ =
      R"({"type":"open_span","tid":)" + std::to_string(tid) + R"(,"name":)";
  scratch_ += name_text;
  scratch_ += std::to_string(start_ns) + "}\n";
  text(scratch_);
}

}  // namespace shp
