#include "cli/trace/splice.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "cli/trace/byte_source.h"
#include "cli/trace/gz_splice.h"

namespace shp {
namespace {

constexpr size_t kCopyBytes = 1U << 20;

Status copy_through_memory(int in, int out, uint64_t begin, uint64_t end) {
  std::vector<char> buffer(std::min<uint64_t>(kCopyBytes, end - begin));
  while (begin < end) {
    const size_t want = std::min<uint64_t>(buffer.size(), end - begin);
    const Result<size_t> got = read_at(in, buffer.data(), want, begin);
    if (!got) {
      return tl::unexpected<Error>(got.error());
    }
    if (*got == 0) {
      return error("changed while it was read");
    }
    const Status written = write_fully(out, {buffer.data(), *got});
    if (!written) {
      return written;
    }
    begin += *got;
  }
  return {};
}

}  // namespace

Status copy_bytes(int in, int out, uint64_t begin, uint64_t end) {
  while (begin < end) {
    auto offset = static_cast<off_t>(begin);
    const ssize_t copied =
        copy_file_range(in, &offset, out, nullptr, end - begin, 0);
    if (copied <= 0) {
      // Not between these two file systems; reads and writes say what is wrong.
      return copy_through_memory(in, out, begin, end);
    }
    begin += static_cast<uint64_t>(copied);
  }
  return {};
}

Status for_kept_bytes(const TraceScan& scan,
                      ByteRange range,
                      const std::function<Status(ByteRange)>& take) {
  uint64_t at = range.begin;
  for (const ByteRange& own : scan.own) {
    const uint64_t stop = std::clamp(own.begin, at, range.end);
    const Status taken = at < stop ? take({at, stop}) : Status{};
    if (!taken) {
      return taken;
    }
    at = std::clamp(own.end, at, range.end);
  }
  return at < range.end ? take({at, range.end}) : Status{};
}

namespace {

Status splice_plain(int in,
                    const ScannedTrace& trace,
                    SpliceOutput out,
                    const WriteEvents& write_events) {
  const auto copy = [&](ByteRange range) {
    return copy_bytes(in, out.fd, range.begin, range.end);
  };
  const TraceScan& scan = trace.scan;
  Status state = for_kept_bytes(scan, {out.has_bytes, scan.insert_at}, copy);
  if (!state) {
    return state;
  }
  FdSink sink(out.fd);
  state = write_events(sink);
  state = state ? sink.finish() : state;
  const auto bytes = static_cast<uint64_t>(trace.identity.bytes);
  return state ? for_kept_bytes(scan, {scan.insert_at, bytes}, copy) : state;
}

}  // namespace

Status splice(int in,
              const ScannedTrace& trace,
              SpliceOutput out,
              const WriteEvents& write_events) {
  return trace.gz ? splice_gz(in, trace, out, write_events)
                  : splice_plain(in, trace, out, write_events);
}

}  // namespace shp
