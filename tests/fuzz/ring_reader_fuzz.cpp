// RingReader over blocks of 256 bytes of anything, its tail moving about.
//
// Input: block count, first block, start position (block, unit), then four
// tails (block, unit), one owner byte a block, the blocks. Missing bytes are 0.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/shm/ring_reader.h"
#include "tests/support/tiny_ring.h"

namespace {

using shp::Record;
using shp::RecordArgs;
using shp::test::TinySource;

struct Input {
  const uint8_t* at;
  const uint8_t* end;
  uint8_t byte() { return at == end ? uint8_t{0} : *at++; }
};

uint64_t position(Input& in) {
  const uint32_t block = in.byte() % 16;
  const uint8_t unit = in.byte();
  // Mostly what a position may be; now and then anything.
  return shp::position_of(block, unit < 16 ? 64 + unit * 32U : unit);
}

struct Visitor {
  size_t records = 0;
  unsigned sum = 0;
  void touch(std::string_view text) {
    for (const char c : text) {
      sum += static_cast<unsigned char>(c);
    }
  }
  void session(uint32_t) { ++records; }
  void span(const Record&) { ++records; }
  void span(const Record&, const RecordArgs& args) {
    ++records;
    touch(args.text);
  }
  void mark(const Record&, const RecordArgs& args) {
    ++records;
    touch(args.text);
  }
  void deferred(const Record&, const RecordArgs& args) {
    ++records;
    touch(args.text);
  }
};

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in{data, data + size};
  TinySource source(in.byte() % 8 + 1);
  const uint32_t first = in.byte();
  const uint64_t start = position(in);
  uint64_t tails[4];
  for (uint64_t& tail : tails) {
    tail = position(in);
  }
  for (uint32_t& owner : source.owner) {
    owner = in.byte() % 4;
  }
  for (unsigned char& byte : source.bytes) {
    byte = in.byte();
  }
  shp::RingReader<TinySource> reader(0);
  reader.open(shp::position_offset(start) == 64 ? 0 : start, first);
  alignas(64) std::byte scratch[TinySource::kBlockSize];
  Visitor visitor;
  for (const uint64_t tail : tails) {
    constexpr size_t kBudget = 2048;
    const auto state = reader.read(source, tail, kBudget, scratch, visitor);
    require(reader.last_bytes() < kBudget + TinySource::kBlockSize);
    require((state == shp::ReadState::kBroken) == reader.broken());
    reader.take_left_blocks(
        [&](uint32_t block) { require(block < source.block_count()); });
  }
  require(visitor.records <= 4 * (2048 + 256) / 32);
  return visitor.sum == 0xffff'ffffU ? 1 : 0;
}
