#include "common/shm/ring_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/tiny_ring.h"

namespace shp {
namespace {

using test::TinySource;

// Writes down what it is given: "s7" a session, "1" a span's id, "1{}" with
// args, "d5{}" deferred args of key 5, "!" args that were not as their flags
// say.
struct Recorder {
  std::vector<std::string> seen;
  void session(uint32_t generation) {
    seen.push_back("s" + std::to_string(generation));
  }
  void span(const Record& record) { seen.push_back(std::to_string(record.id)); }
  void span(const Record& record, const RecordArgs& args) {
    seen.push_back(std::to_string(record.id) +
                   (args.key != 0 ? "k" + std::to_string(args.key) : "") +
                   (args.good ? std::string(args.text) : "!"));
  }
  void mark(const Record& record, const RecordArgs& args) {
    seen.push_back((record.kind == kCounter ? "c" : "i") +
                   std::to_string(record.id) +
                   (args.good ? std::string(args.text) : "!"));
  }
  void deferred(const Record&, const RecordArgs& args) {
    seen.push_back("d" + std::to_string(args.key) +
                   (args.good ? std::string(args.text) : "!"));
  }
};
using Seen = std::vector<std::string>;

struct Fixture {
  TinySource source{8};
  RingReader<TinySource> reader{0};
  Recorder recorder;
  alignas(64) std::byte scratch[256];

  ReadState read(uint64_t tail, size_t budget = 1 << 20) {
    return reader.read(source, tail, budget, scratch, recorder);
  }
  void span(uint32_t block, uint32_t unit, uint64_t id) {
    source.put(block, 64 + unit * 32, Record{kSpan, 0, 1, 1, 10, 20, id});
  }
  // A record with `payload`, padded to whole units.
  void rich(uint32_t block,
            uint32_t unit,
            uint8_t kind,
            uint8_t flags,
            uint64_t id,
            const std::string& payload) {
    const auto units = static_cast<uint16_t>(1 + (payload.size() + 31) / 32);
    source.put(
        block, 64 + unit * 32, Record{kind, flags, units, 1, 10, 20, id});
    std::memcpy(source.bytes.data() + block * 256 + 96 + unit * 32,
                payload.data(),
                payload.size());
  }
  // Three blocks, 4 → 2 → 6, six spans in each of the first two, two in the
  // last; ids 1 to 14.
  uint64_t chain() {
    source.header(4, 0, 256, 2);
    source.header(2, 1, 256, 6);
    source.header(6, 2, 0, kNoBlock);
    uint64_t id = 1;
    for (const uint32_t block : {4U, 2U, 6U}) {
      for (uint32_t unit = 0; unit < (block == 6 ? 2U : 6U); ++unit) {
        span(block, unit, id++);
      }
    }
    reader.open(0, 4);
    return position_of(6, 64 + 64);
  }
};

std::string counted(const std::string& text) {
  const auto n = static_cast<uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&n), 4) + text;
}
std::string key(uint64_t k) {
  return std::string(reinterpret_cast<const char*>(&k), 8);
}
Seen ids(int first, int last) {
  Seen out;
  for (int i = first; i <= last; ++i) {
    out.push_back(std::to_string(i));
  }
  return out;
}

TEST_CASE("records come in the order of the chain and blocks are left") {
  Fixture f;
  const uint64_t tail = f.chain();
  CHECK(f.read(tail) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == ids(1, 14));
  CHECK(f.reader.safe_position() == tail);
  CHECK(f.reader.at(tail));
  CHECK(f.reader.current_block() == 6);
  std::vector<uint32_t> left;
  f.reader.take_left_blocks([&](uint32_t block) { left.push_back(block); });
  CHECK(left == std::vector<uint32_t>{4, 2});
  f.reader.take_left_blocks([&](uint32_t block) { left.push_back(block); });
  CHECK(left.size() == 2);
}

TEST_CASE("a reader goes on where it, or an earlier one, stopped") {
  Fixture f;
  const uint64_t tail = f.chain();
  CHECK(f.read(position_of(2, 64 + 96)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == ids(1, 9));
  CHECK(f.read(position_of(2, 64 + 128)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == ids(1, 10));
  RingReader<TinySource> next{0};
  next.open(f.reader.safe_position(), kNoBlock);
  Recorder rest;
  CHECK(next.read(f.source, tail, 1 << 20, f.scratch, rest) ==
        ReadState::kCaughtUp);
  CHECK(rest.seen == ids(11, 14));
}

TEST_CASE("one call does not much more than its budget") {
  Fixture f;
  const uint64_t tail = f.chain();
  CHECK(f.read(tail, 1) == ReadState::kMore);
  CHECK(f.recorder.seen == ids(1, 6));
  CHECK(f.reader.last_bytes() == 192);
  CHECK(f.read(tail, 193) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == ids(1, 14));
}

TEST_CASE("a writer between two blocks is waited for, not judged") {
  Fixture f;
  f.chain();
  // The tail already names the new block, in which nothing stands yet.
  CHECK(f.read(position_of(2, 64)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == ids(1, 6));
}

TEST_CASE("sessions and unknown kinds are told apart from spans") {
  Fixture f;
  f.source.header(0, 0, 0, kNoBlock);
  f.source.put(0, 64, Record{kSession, 0, 1, 7, 0, 0, 0});
  f.span(0, 1, 5);
  f.source.put(0, 128, Record{200, 0, 2, 0, 0, 0, 0});
  f.source.put(0, 192, Record{kSession, 0, 1, 8, 0, 0, 0});
  f.reader.open(0, 0);
  CHECK(f.read(position_of(0, 224)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == Seen{"s7", "5", "s8"});
  CHECK(f.reader.unknown_records() == 1);
}

TEST_CASE("payloads are taken apart by their flags") {
  Fixture f;
  f.source.header(0, 0, 0, kNoBlock);
  f.rich(0, 0, kSpan, kHasArgs, 1, counted("{\"a\":1}"));
  f.rich(0, 2, kSpan, kHasDeferred, 2, key(9));
  f.rich(0, 4, kDeferred, kHasArgs, 9, key(9) + counted("{}"));
  f.reader.open(0, 0);
  CHECK(f.read(position_of(0, 256)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == Seen{"1{\"a\":1}", "2k9", "d9{}"});
}

TEST_CASE("a count larger than its record makes bad args, not a bad read") {
  Fixture f;
  f.source.header(0, 0, 0, kNoBlock);
  std::string lie = counted("{}");
  lie[0] = 100;
  f.rich(0, 0, kSpan, kHasArgs, 1, lie);
  f.source.put(0, 64 + 64, Record{kSpan, kHasArgs, 1, 1, 1, 2, 2});
  f.source.put(0, 64 + 96, Record{kSpan, kHasDeferred, 1, 1, 1, 2, 3});
  f.span(0, 4, 4);
  f.reader.open(0, 0);
  CHECK(f.read(position_of(0, 64 + 160)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == Seen{"1!", "2!", "3!", "4"});
}

TEST_CASE("pieces of args are joined, and not committed before their span") {
  Fixture f;
  f.source.header(0, 0, 256, 1);
  f.source.header(1, 1, 0, kNoBlock);
  f.span(0, 0, 1);
  f.rich(0, 1, kArgsPart, 0, 2, counted("{\"a\":"));
  f.rich(0, 3, kArgsPart, 0, 2, counted("\"xyz\""));
  f.span(0, 5, 99);  // overwritten below: the last unit of block 0
  f.rich(0, 5, kArgsPart, 0, 2, "");
  f.source.put(0, 64 + 5 * 32, Record{kArgsPart, 0, 1, 0, 0, 0, 2});
  f.reader.open(0, 0);
  CHECK(f.read(position_of(0, 64 + 160)) == ReadState::kCaughtUp);
  // Read until the third piece, but for good only when the span has come: a
  // reader that goes on from here neither loses them nor hands out 1 again.
  CHECK(f.recorder.seen == Seen{"1"});
  CHECK(f.reader.safe_position() == position_of(0, 64 + 32));
}

TEST_CASE("pieces that end in another block come out as one text") {
  Fixture f;
  f.source.header(0, 0, 64 + 128, 1);
  f.source.header(1, 1, 0, kNoBlock);
  f.rich(0, 0, kArgsPart, 0, 2, counted("{\"a\":"));
  f.rich(0, 2, kArgsPart, 0, 2, counted("\"xyz\"}"));
  f.source.put(1, 64, Record{kSpan, kHasParts, 1, 1, 1, 2, 2});
  f.span(1, 1, 3);
  f.reader.open(0, 0);
  CHECK(f.read(position_of(1, 64)) == ReadState::kCaughtUp);
  bool freed = false;
  f.reader.take_left_blocks([&](uint32_t) { freed = true; });
  CHECK_FALSE(freed);
  CHECK(f.read(position_of(1, 128)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == Seen{"2{\"a\":\"xyz\"}", "3"});
  CHECK(f.reader.safe_position() == position_of(1, 128));
  f.reader.take_left_blocks([&](uint32_t) { freed = true; });
  CHECK(freed);
}

TEST_CASE("pieces of another record, or without theirs, are nothing") {
  Fixture f;
  f.source.header(0, 0, 0, kNoBlock);
  f.rich(0, 0, kArgsPart, 0, 7, counted("{}"));
  f.source.put(0, 128, Record{kSpan, kHasParts, 1, 1, 1, 2, 8});
  f.rich(0, 3, kArgsPart, 0, 9, counted("{}"));
  f.span(0, 5, 9);
  f.reader.open(0, 0);
  CHECK(f.read(position_of(0, 256)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == Seen{"8!", "9"});
  CHECK(f.reader.safe_position() == position_of(0, 256));
}

// ---- what a hostile client may do
// ---------------------------------------------

// Breaks the good chain in one place; the reader must say so and stay away.
template <typename Break>
Seen seen_when(Break&& breaks, bool* broken) {
  Fixture f;
  uint64_t tail = f.chain();
  breaks(f, tail);
  *broken = f.read(tail) == ReadState::kBroken;
  const size_t before = f.recorder.seen.size();
  *broken = *broken && f.read(tail) == ReadState::kBroken &&
            f.recorder.seen.size() == before;
  return f.recorder.seen;
}

TEST_CASE("a chain that breaks a rule is not read past the break") {
  struct Case {
    const char* what;
    void (*breaks)(Fixture&, uint64_t&);
    int last;  // id of the last span that is still right
  };
  const Case cases[] = {
      {"tail outside",
       [](Fixture&, uint64_t& t) { t = position_of(8, 64); },
       0},
      {"tail in the header",
       [](Fixture&, uint64_t& t) { t = position_of(6, 32); },
       0},
      {"tail askew", [](Fixture&, uint64_t& t) { t = position_of(6, 65); }, 0},
      {"tail past the block",
       [](Fixture&, uint64_t& t) { t = position_of(6, 288); },
       0},
      {"first block is another ring's",
       [](Fixture& f, uint64_t&) { f.source.owner[4] = 2; },
       0},
      {"first block has no owner",
       [](Fixture& f, uint64_t&) { f.source.owner[4] = 0; },
       0},
      {"first block says it is another ring's",
       [](Fixture& f, uint64_t&) { f.source.put(4, 0, uint32_t{3}); },
       0},
      {"first block is not a chain's first",
       [](Fixture& f, uint64_t&) { f.source.put(4, 4, uint32_t{1}); },
       0},
      {"no next",
       [](Fixture& f, uint64_t&) { f.source.put(4, 12, kNoBlock); },
       6},
      {"next outside",
       [](Fixture& f, uint64_t&) { f.source.put(4, 12, uint32_t{8}); },
       6},
      {"next is itself",
       [](Fixture& f, uint64_t&) { f.source.put(4, 12, uint32_t{4}); },
       0},
      {"a circle",
       [](Fixture& f, uint64_t&) { f.source.put(2, 12, uint32_t{4}); },
       12},
      {"a sequence leaps",
       [](Fixture& f, uint64_t&) { f.source.put(2, 4, uint32_t{5}); },
       6},
      {"used runs backwards",
       [](Fixture& f, uint64_t&) { f.source.put(4, 8, uint32_t{32}); },
       0},
      {"used past the block",
       [](Fixture& f, uint64_t&) { f.source.put(4, 8, uint32_t{288}); },
       0},
      {"used askew",
       [](Fixture& f, uint64_t&) { f.source.put(4, 8, uint32_t{100}); },
       0},
      {"a record of no size",
       [](Fixture& f, uint64_t&) { f.source.put(4, 64 + 32 + 2, uint16_t{0}); },
       1},
      {"a record past the end",
       [](Fixture& f, uint64_t&) { f.source.put(4, 64 + 32 + 2, uint16_t{6}); },
       1},
      {"a record far past the end",
       [](Fixture& f, uint64_t&) {
         f.source.put(4, 64 + 32 + 2, uint16_t{0xffff});
       },
       1},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    bool broken = false;
    CHECK(seen_when(one.breaks, &broken) == ids(1, one.last));
    CHECK(broken);
  }
}

TEST_CASE("a tail that runs backwards breaks the ring") {
  Fixture f;
  f.chain();
  CHECK(f.read(position_of(4, 160)) == ReadState::kCaughtUp);
  CHECK(f.read(position_of(4, 128)) == ReadState::kBroken);
  CHECK(f.reader.last_bytes() == 0);
  CHECK(f.recorder.seen == ids(1, 3));
}

// A client that changes its headers between any two looks, so that a circle of
// two blocks always has the numbers that a chain would have.
struct CircleSource : TinySource {
  using TinySource::TinySource;
  mutable uint32_t last_block = 0;
  mutable uint32_t sequence = 0;
  bool read_block(uint32_t block, uint32_t offset, void* to, uint32_t n) const {
    if (offset == 0) {
      sequence += block != last_block ? 1 : 0;
      last_block = block;
      const uint32_t header[16] = {0, sequence, kBlockSize, 1 - block};
      std::memcpy(to, header, n);
      return true;
    }
    return TinySource::read_block(block, offset, to, n);
  }
};

TEST_CASE("an endless chain is read no further than the budget") {
  CircleSource source(3);
  source.owner = {1, 1, 0};
  for (uint32_t unit = 0; unit < 12; ++unit) {
    source.put(
        unit / 6, 64 + unit % 6 * 32, Record{kSpan, 0, 1, 1, 10, 20, unit});
  }
  RingReader<CircleSource> reader{0};
  reader.open(0, 0);
  Recorder recorder;
  alignas(64) std::byte scratch[256];
  CHECK(reader.read(source, position_of(2, 64), 192 * 100, scratch, recorder) ==
        ReadState::kMore);
  CHECK(recorder.seen.size() == 600);
}

TEST_CASE("marks and counter values are handed on with their args") {
  Fixture f;
  f.source.header(0, 0, 0, kNoBlock);
  f.rich(0, 0, kInstant, 0, 1, "");
  f.rich(0, 1, kCounter, 0, 2, "");
  f.rich(0, 2, kInstant, kHasArgs, 3, counted("{}"));
  f.reader.open(0, 0);
  CHECK(f.read(position_of(0, 64 + 4 * 32)) == ReadState::kCaughtUp);
  CHECK(f.recorder.seen == Seen{"i1", "c2", "i3{}"});
  CHECK(f.reader.unknown_records() == 0);
}

}  // namespace
}  // namespace shp
