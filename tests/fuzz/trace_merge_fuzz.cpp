// Any bytes as a trace, plain or gzip: scanned, decided, and where it is a
// trace spliced. Then our events are found again, exactly; without them the
// bytes are the old ones; and to splice once more changes nothing.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <string>

#include "cli/trace/classify.h"
#include "cli/trace/splice.h"
#include "cli/trace/trace_file.h"
#include "common/base/check.h"

using namespace shp;

static constexpr std::string_view kOurs =
    R"({"ph":"M","cat":"shp","name":"thread_name","pid":5,"args":{}},)"
    "\n"
    R"({"ph":"X","cat":"shp","name":"s","pid":5,"tid":6,"ts":1,"dur":2})";

static UniqueFd file_of(const void* data, size_t size) {
  UniqueFd fd(memfd_create("trace", MFD_CLOEXEC));
  SHP_CHECK(write(fd.get(), data, size) == static_cast<ssize_t>(size));
  return fd;
}

static std::string content(int fd) {
  struct stat status;
  SHP_CHECK(fstat(fd, &status) == 0);
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  SHP_CHECK(pread(fd, bytes.data(), bytes.size(), 0) == status.st_size);
  return bytes;
}

// The inflated bytes without our events.
static std::string others(int fd, const ScannedTrace& trace) {
  std::string all;
  PlainSource plain(fd);
  GzSource gz(fd);
  ByteSource& source = trace.gz ? static_cast<ByteSource&>(gz) : plain;
  char some[4096];
  while (const size_t got = source.read(some, sizeof(some)).value_or(0)) {
    all.append(some, got);
  }
  std::string out;
  uint64_t at = 0;
  for (const ByteRange& own : trace.scan.own) {
    SHP_CHECK(at <= own.begin && own.begin < own.end && own.end <= all.size());
    out.append(all, at, own.begin - at);
    at = own.end;
  }
  return out.append(all, at);
}

static UniqueFd spliced(int in, const ScannedTrace& trace) {
  UniqueFd out(memfd_create("out", MFD_CLOEXEC));
  const Status done = splice(in, trace, {out.get(), 0}, [&](TextSink& sink) {
    const Status comma = sink.write(trace.scan.has_events ? ",\n" : "");
    return comma ? sink.write(kOurs) : comma;
  });
  SHP_CHECK(done);
  return out;
}

// One gzip member whose blocks end at odd bits, every few bytes.
static std::string compressed(const uint8_t* data, size_t size) {
  z_stream stream{};
  SHP_CHECK(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, 0) == Z_OK);
  const size_t block = size % 97 + 3;
  std::string out(size * 2 + size / block * 100 + 1000, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  stream.next_in = const_cast<Bytef*>(data);
  for (size_t at = 0; at < size; at += block) {
    stream.avail_in = static_cast<unsigned>(std::min(block, size - at));
    deflate(&stream, Z_BLOCK);
  }
  SHP_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

static void merge_and_check(const void* data, size_t size) {
  const UniqueFd in = file_of(data, size);
  const Result<ScannedTrace> trace = scan_file(in.get());
  if (!trace) {
    SHP_CHECK(!trace.error().message.empty());
    return;
  }
  const TraceClass decided = classify(trace->scan);
  SHP_CHECK(decided.verdict == Verdict::kTrace || !decided.reason.empty());
  if (!trace->scan.not_a_trace.empty()) {
    return;
  }
  const UniqueFd once = spliced(in.get(), *trace);
  const Result<ScannedTrace> again = scan_file(once.get());
  SHP_CHECK(again && again->scan.not_a_trace.empty());
  SHP_CHECK(again->scan.own_events == 2);
  SHP_CHECK(again->scan.events == trace->scan.events);
  SHP_CHECK(others(once.get(), *again) == others(in.get(), *trace));
  const UniqueFd twice = spliced(once.get(), *again);
  if (trace->scan.own.empty() || !trace->gz) {
    SHP_CHECK(content(twice.get()) == content(once.get()));
    return;
  }
  // Events of ours that lay about in the input moved the place of change: the
  // text is the same at once, its compression from now on.
  const Result<ScannedTrace> third = scan_file(twice.get());
  SHP_CHECK(third);
  const UniqueFd thrice = spliced(twice.get(), *third);
  SHP_CHECK(content(thrice.get()) == content(twice.get()));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  merge_and_check(data, size);
  const std::string gz = compressed(data, size);
  merge_and_check(gz.data(), gz.size());
  return 0;
}
