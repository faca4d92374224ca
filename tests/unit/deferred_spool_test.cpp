#include "daemon/deferred_spool.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/temporary_directory.h"

namespace shp {
namespace {

using test::TemporaryDirectory;
using Entry = DeferredSpool::Entry;

Entry entry(int64_t start) {
  return {start, 1, 2, 3, 0, 0};
}

TEST_CASE("what was put under a key is taken once") {
  const TemporaryDirectory directory;
  DeferredSpool spool(directory.fd.get());
  Entry out;
  CHECK_FALSE(spool.take(1, &out));
  REQUIRE(spool.put(1, entry(10)));
  REQUIRE(spool.put(2, entry(20)));
  CHECK_FALSE(spool.put(2, entry(21)));
  CHECK(spool.waiting() == 2);
  REQUIRE(spool.take(2, &out));
  CHECK(out.start_ns == 20);
  CHECK(out.name == 2);
  CHECK(out.tid == 3);
  CHECK_FALSE(spool.take(2, &out));
  CHECK_FALSE(spool.take(3, &out));
  CHECK(spool.waiting() == 1);
}

TEST_CASE("the file has no name that anybody could find") {
  const TemporaryDirectory directory;
  DeferredSpool spool(directory.fd.get());
  REQUIRE(spool.put(1, entry(10)));
  CHECK(std::filesystem::is_empty(directory.path));
}

TEST_CASE("many entries survive being put and taken in any order") {
  const TemporaryDirectory directory;
  DeferredSpool spool(directory.fd.get());
  // 7919 is prime to 50000: every key once, far apart.
  constexpr uint64_t kCount = 50'000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t key = 1 + i * 7919 % kCount;
    REQUIRE(spool.put(key, entry(static_cast<int64_t>(key))));
  }
  bool right = true;
  for (uint64_t i = 0; i < kCount; i += 2) {
    const uint64_t key = 1 + i * 104'729 % kCount;
    Entry out;
    right = right && spool.take(key, &out) &&
            out.start_ns == static_cast<int64_t>(key);
  }
  CHECK(right);
  int64_t last = 0;
  uint64_t rest = 0;
  spool.take_rest([&](const Entry& one) {
    right = right && one.start_ns > last;
    last = one.start_ns;
    ++rest;
  });
  CHECK(right);
  CHECK(rest == kCount / 2);
  CHECK(spool.waiting() == 0);
}

TEST_CASE("keys out of range are refused") {
  const TemporaryDirectory directory;
  DeferredSpool spool(directory.fd.get());
  CHECK_FALSE(spool.put(0, entry(1)));
  CHECK_FALSE(spool.put(DeferredSpool::kMaxKey + 1, entry(1)));
  CHECK_FALSE(spool.put(UINT64_MAX, entry(1)));
  CHECK(spool.put(DeferredSpool::kMaxKey, entry(1)));
  uint64_t rest = 0;
  spool.take_rest([&](const Entry&) { ++rest; });
  CHECK(rest == 1);
}

TEST_CASE("a directory that cannot hold it makes put fail, and only that") {
  DeferredSpool spool(-1);
  CHECK_FALSE(spool.put(1, entry(1)));
  Entry out;
  CHECK_FALSE(spool.take(1, &out));
}

}  // namespace
}  // namespace shp
