// The host file reader on any bytes: it ends with spans that keep the format's
// promises, or with one error.
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/jsonl/json_check.h"
#include "common/jsonl/line_reader.h"

using namespace shp;

static void check_span(const HostMetadata& metadata, const HostSpan& span) {
  SHP_CHECK(span.id > 0 && span.tid >= 0 && span.duration_ns >= 0);
  SHP_CHECK(span.start_ns >= metadata.start_monotonic_ns);
  SHP_CHECK(span.start_ns + span.duration_ns <= metadata.stop_monotonic_ns);
  SHP_CHECK(is_json(span.name) && span.name.front() == '"');
  SHP_CHECK(is_json(span.args) && span.args.front() == '{');
  const std::string name = json_unescape(span.name);
  SHP_CHECK(!name.empty() && name.find('\0') == std::string::npos);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  UniqueFd fd(memfd_create("host", MFD_CLOEXEC));
  SHP_CHECK(write(fd.get(), data, size) == static_cast<ssize_t>(size));
  lseek(fd.get(), 0, SEEK_SET);
  Result<LineReader> reader = open_host_file(std::move(fd), "f");
  if (!reader) {
    SHP_CHECK(!reader.error().message.empty());
    return 0;
  }
  HostSpan span;
  int64_t count = 0;
  while (true) {
    const Result<bool> got = reader->next(span);
    if (!got) {
      SHP_CHECK(got.error().message.find('\n') == std::string::npos);
      return 0;
    }
    if (!*got) {
      break;
    }
    ++count;
    check_span(reader->metadata(), span);
  }
  SHP_CHECK(count == reader->metadata().written_spans);
  return 0;
}
