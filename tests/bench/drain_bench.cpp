// How many spans a second one core of the daemon turns from records in an arena
// into lines in a file: the session thread's own code (Drain, LineWriter,
// ExclusiveFile) over an arena that is filled between the timed rounds. CPU
// time of the draining thread, system calls included.
//
//   drain_bench [--small] [DIRECTORY]
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "common/base/clock.h"
#include "common/publish/exclusive_file.h"
#include "daemon/drain.h"
#include "tests/support/test_arena.h"

namespace shp {
namespace {

constexpr uint32_t kBlocks = 512;

int64_t cpu_ns() {
  return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

class NullSink : public LineSink {
 public:
  bool write(std::string_view bytes) override {
    bytes_ += bytes.size();
    return true;
  }
  uint64_t bytes_ = 0;
};

class FileSink : public LineSink {
 public:
  explicit FileSink(ExclusiveFile& file) : file_(file) {}
  bool write(std::string_view bytes) override {
    return file_.append(&bytes).has_value();
  }

 private:
  ExclusiveFile& file_;
};

struct Load {
  const char* title;
  std::string_view args;  // of each span; empty: none
};

// Spans of 16 names that follow each other, 400 ns apart, as long as the pool
// has blocks.
uint64_t fill(test::TestRing& ring, const Load& load, uint64_t* ticks) {
  uint64_t spans = 0;
  const std::string payload =
      load.args.empty() ? std::string() : test::counted(load.args);
  const uint8_t flags = load.args.empty() ? 0 : kHasArgs;
  while (ring.record(
      kSpan, flags, 1 + spans % 16, *ticks, *ticks + 350, spans + 1, payload)) {
    *ticks += 400;
    ++spans;
  }
  return spans;
}

double spans_per_second(const Load& load, LineSink& sink, int rounds) {
  test::TestArena arena(
      {.rings = 1, .blocks = kBlocks, .clock = ClockKind::kTsc});
  for (int i = 0; i < 16; ++i) {
    arena.add_name("scheduler_step_" + std::to_string(i));
  }
  test::TestRing ring(arena, 0, 4711);
  ring.session(1);
  Result<ArenaView> view = ArenaView::open(arena.fd());
  SHP_CHECK(view);
  LineWriter writer(sink);
  DeferredSpool spool(AT_FDCWD);
  ClockSample start;
  start.ticks = 1'000'000;
  start.monotonic_ns = 86'400'000'000'000;
  Drain drain(*view, writer, spool, {1, 4242, start});
  drain.begin();
  uint64_t ticks = start.ticks + 1000;
  uint64_t spans = 0;
  int64_t cpu = 0;
  for (int i = 0; i < rounds; ++i) {
    spans += fill(ring, load, &ticks);
    ClockSample now = start;
    now.ticks = ticks;
    now.monotonic_ns += static_cast<int64_t>(ticks - start.ticks) * 2 / 5;
    const int64_t before = cpu_ns();
    do {
      drain.see_tails();
      drain.round(now);
      writer.flush();
      drain.commit(0);
    } while (drain.last_bytes() > 0);
    cpu += cpu_ns() - before;
  }
  SHP_CHECK(writer.spans() == spans && !writer.failed());
  return static_cast<double>(spans) * 1e9 / static_cast<double>(cpu);
}

void report(const Load& load, const char* to, LineSink& sink, int rounds) {
  const double rate = spans_per_second(load, sink, rounds);
  std::printf("%-28s %-10s %10.0f spans/s  %6.1f ns/span\n",
              load.title,
              to,
              rate,
              1e9 / rate);
}

}  // namespace
}  // namespace shp

int main(int argc, char** argv) {
  using namespace shp;
  bool small = false;
  const char* directory = ".";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else {
      directory = argv[i];
    }
  }
  const Load loads[] = {
      {"no args", ""},
      {"3 scalars", R"({"batch": 32, "kind": "decode", "ok": true})"},
  };
  const UniqueFd at(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  SHP_CHECK(at);
  for (const Load& load : loads) {
    NullSink nowhere;
    report(load, "nowhere", nowhere, small ? 2 : 40);
    const std::string name =
        "drain_bench." + std::to_string(getpid()) + ".jsonl";
    Result<ExclusiveFile> file = ExclusiveFile::create(at.get(), name);
    SHP_CHECK(file);
    FileSink sink(*file);
    report(load, "file", sink, small ? 2 : 20);
    file->remove_pending();
  }
  return 0;
}
