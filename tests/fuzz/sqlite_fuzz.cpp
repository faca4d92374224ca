// Any bytes as a historical SQLite host file: what is read of it obeys the
// rules that every host file obeys, and what is not is an error with words.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "cli/trace/sqlite_reader.h"
#include "common/base/check.h"
#include "common/base/unique_fd.h"

using namespace shp;

static void read_all(HostReader& reader) {
  HostSpan span;
  int64_t spans = 0;
  while (true) {
    const Result<bool> got = reader.next(span);
    if (!got) {
      SHP_CHECK(!got.error().message.empty());
      return;
    }
    if (!*got) {
      break;
    }
    ++spans;
    SHP_CHECK(span.duration_ns >= 0);
    SHP_CHECK(span.start_ns >= reader.metadata().start_monotonic_ns);
    SHP_CHECK(span.start_ns + span.duration_ns <=
              reader.metadata().stop_monotonic_ns);
    SHP_CHECK(span.name.size() >= 2 && span.args.front() == '{');
  }
  SHP_CHECK(spans == reader.metadata().written_spans);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const UniqueFd fd(memfd_create("database", MFD_CLOEXEC));
  SHP_CHECK(write(fd.get(), data, size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  if (!is_sqlite(path)) {
    return 0;
  }
  const Result<std::unique_ptr<HostReader>> reader = open_sqlite_host(path);
  if (!reader) {
    SHP_CHECK(!reader.error().message.empty());
    return 0;
  }
  read_all(**reader);
  return 0;
}
