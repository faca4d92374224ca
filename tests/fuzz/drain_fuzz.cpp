// A session's whole drain over an arena that its client has put wrong: a good
// arena, then the input's changes, a few between each two rounds.
//
// Input: any number of changes of 12 bytes: u32 where (into the parts that a
// reader looks at), u64 what.
#include <fcntl.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "daemon/drain.h"
#include "tests/support/test_arena.h"

namespace {

using namespace shp;

class CountingSink : public LineSink {
 public:
  bool write(std::string_view bytes) override {
    bytes_ += bytes.size();
    return bytes_ < (64U << 20);
  }
  size_t bytes_ = 0;
};

struct Change {
  uint32_t where;
  uint64_t what;
};

// A small arena's interesting bytes, one after the other.
char* place(test::TestArena& arena, uint32_t where) {
  struct Part {
    char* at;
    uint32_t bytes;
  };
  const Part parts[] = {
      {reinterpret_cast<char*>(&arena.header()) + 128, 512},
      {reinterpret_cast<char*>(&arena.ring(0)), 512},
      {reinterpret_cast<char*>(&arena.ring(1)), 512},
      {reinterpret_cast<char*>(&arena.state(0)), 32},
      {reinterpret_cast<char*>(&arena.name_entry(1)), 64},
      {arena.block_bytes(0), 512},
      {arena.block_bytes(1), 512},
      {arena.block_bytes(2), 256},
  };
  uint32_t total = 0;
  for (const Part& part : parts) {
    total += part.bytes - 8;
  }
  where %= total;
  for (const Part& part : parts) {
    if (where < part.bytes - 8) {
      return part.at + where;
    }
    where -= part.bytes - 8;
  }
  return parts[0].at;
}

void fill(test::TestArena& arena, test::TestRing& ring) {
  ring.session(1);
  ring.span(1, 1100, 1200, 1);
  ring.record(kSpan, kHasArgs, 2, 1100, 1200, 2, test::counted("{\"a\":1}"));
  ring.record(kSpan, kHasDeferred, 1, 1100, 1200, 3, test::key_bytes(1));
  ring.record(kArgsPart, 0, 0, 0, 0, 4, test::counted("{\"b\":"));
  ring.record(
      kSpan, kHasParts | kHasArgs, 1, 1100, 1200, 4, test::counted("2}"));
  ring.record(kDeferred,
              kHasArgs,
              0,
              0,
              0,
              1,
              test::key_bytes(1) + test::counted("{}"));
  ring.open_slot(0, 1, 1300, 5);
  arena.ring(0).open_beyond = 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  test::TestArena arena({.rings = 4, .blocks = 8});
  arena.add_name("first");
  arena.add_name("second \xff");
  test::TestRing one(arena, 0, 11);
  test::TestRing two(arena, 1, 12);
  fill(arena, one);
  fill(arena, two);
  Result<ArenaView> view = ArenaView::open(arena.fd());
  CountingSink sink;
  LineWriter writer(sink);
  DeferredSpool spool(AT_FDCWD);
  ClockSample sample;
  sample.ticks = 1000;
  sample.monotonic_ns = 1000;
  Drain drain(*view, writer, spool, {1, 7, sample});
  drain.begin();
  while (size >= sizeof(uint32_t) + sizeof(uint64_t)) {
    for (int i = 0; i < 4 && size >= 12; ++i, data += 12, size -= 12) {
      Change change;
      std::memcpy(&change.where, data, 4);
      std::memcpy(&change.what, data + 4, 8);
      std::memcpy(place(arena, change.where), &change.what, 8);
    }
    sample.ticks += 1000;
    sample.monotonic_ns += 1000;
    drain.see_tails();
    drain.round(sample);
    writer.flush();
    drain.commit(sink.bytes_);
  }
  drain.begin_finish(sample);
  drain.see_tails();
  drain.round(sample);
  drain.end_finish();
  drain.write_threads();
  writer.flush();
  drain.commit(sink.bytes_);
  drain.open_spans();
  return drain.losses().sum() == 77'777 ? 1 : 0;
}
