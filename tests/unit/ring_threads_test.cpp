// Writer and reader of one ring at the same time, as threads so that TSan sees
// them: a pool so small that blocks go round all the time.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/shm/ring_reader.h"
#include "common/shm/ring_writer.h"

namespace {

constexpr uint32_t kBytes = 256;  // a header and six records
constexpr uint32_t kBlocks = 3;
constexpr uint32_t kRing = 5;
constexpr uint64_t kSpans = 3'000;

// What both sides share. The writer's owner marks are claimed with acquire and
// given back with release, as in the arena.
struct Shared {
  std::array<std::atomic<uint32_t>, kBlocks> owner{};
  alignas(64) std::array<uint64_t, kBytes / 8 * kBlocks> memory{};
  shp::RingHeader ring{};

  uint64_t* words(uint32_t block) { return &memory[block * (kBytes / 8)]; }
};

struct Pool {
  static constexpr uint32_t kBytes = ::kBytes;
  Shared* shared;

  uint32_t claim(uint32_t ring) noexcept {
    for (uint32_t i = 0; i < kBlocks; ++i) {
      uint32_t nobody = 0;
      if (shared->owner[i].compare_exchange_strong(
              nobody, ring + 1, std::memory_order_acquire)) {
        return i;
      }
    }
    return shp::kNoBlock;
  }
  std::byte* block(uint32_t index) noexcept {
    return reinterpret_cast<std::byte*>(shared->words(index));
  }
};

struct Source {
  static constexpr uint32_t kBlockSize = kBytes;
  Shared* shared;

  uint32_t block_count() const { return kBlocks; }
  bool owns(uint32_t ring, uint32_t block) const {
    return shared->owner[block].load(std::memory_order_relaxed) == ring + 1;
  }
  // By relaxed words: `used` and `next` of a block may change while its header
  // is read for `ring` and `sequence`, which do not.
  bool read_block(uint32_t block, uint32_t at, void* to, uint32_t n) const {
    for (uint32_t i = 0; i < n / 8; ++i) {
      static_cast<uint64_t*>(to)[i] =
          __atomic_load_n(shared->words(block) + at / 8 + i, __ATOMIC_RELAXED);
    }
    return true;
  }
};

struct Visitor {
  std::vector<uint64_t>& ids;
  void session(uint32_t) {}
  void span(const shp::Record& record) { ids.push_back(record.id); }
  void span(const shp::Record& record, const shp::RecordArgs&) {
    ids.push_back(record.id);
  }
  void deferred(const shp::Record&, const shp::RecordArgs&) {}
  void mark(const shp::Record&, const shp::RecordArgs&) {}
};

// `given_up`: the reader has, so no block will come back.
void write_all(shp::RingWriter<Pool>& writer,
               const std::atomic<bool>& given_up) {
  for (uint64_t id = 1; id <= kSpans && !given_up.load();) {
    // Every seventh record takes two units, so that blocks end unevenly.
    const uint16_t units = id % 7 == 0 ? 2 : 1;
    shp::Record* record = writer.reserve(units);
    if (record == nullptr) {
      std::this_thread::yield();
      continue;
    }
    *record = {shp::kSpan, 0, units, 1, id, id + 1, id};
    writer.publish(units);
    ++id;
  }
}

std::vector<uint64_t> read_all(Shared& shared, const std::atomic<bool>& ended) {
  const Source source{&shared};
  shp::RingReader<Source> reader(kRing);
  reader.open(0, shared.ring.first_block.load());
  alignas(64) std::byte scratch[kBytes];
  std::vector<uint64_t> ids;
  for (bool last = false; !last;) {
    last = ended.load();
    const uint64_t tail = shared.ring.tail.load(std::memory_order_acquire);
    const auto state =
        reader.read(source, tail, 1U << 20, scratch, Visitor{ids});
    if (state != shp::ReadState::kCaughtUp) {
      break;
    }
    reader.take_left_blocks([&shared](uint32_t block) {
      shared.owner[block].store(0, std::memory_order_release);
    });
  }
  return ids;
}

}  // namespace

TEST_CASE("what one thread writes another reads, whole, once and in order") {
  const auto shared = std::make_unique<Shared>();
  Pool pool{shared.get()};
  shp::RingWriter<Pool> writer;
  REQUIRE(writer.open(pool, shared->ring, kRing));
  std::atomic<bool> ended{false};
  std::atomic<bool> given_up{false};
  std::thread thread([&] {
    write_all(writer, given_up);
    ended.store(true);
  });
  const std::vector<uint64_t> ids = read_all(*shared, ended);
  given_up.store(true);
  thread.join();
  REQUIRE(ids.size() == kSpans);
  for (uint64_t i = 0; i < kSpans; ++i) {
    REQUIRE(ids[i] == i + 1);
  }
}
