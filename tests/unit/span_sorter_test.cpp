#include "cli/trace/span_sorter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

using namespace shp;

namespace {

using Row = std::tuple<int64_t, int64_t, int64_t, std::string, std::string>;

std::vector<Row> sorted_by_us(const std::vector<Row>& rows, size_t memory) {
  SpanSorter sorter("/tmp", memory);
  for (const auto& [tid, start, end, name, args] : rows) {
    REQUIRE(sorter.add({tid, start, end, name, args}));
  }
  REQUIRE(sorter.finish());
  std::vector<Row> out;
  SortedSpan span;
  while (*sorter.next(span)) {
    out.emplace_back(
        span.tid, span.start_ns, span.end_ns, span.name, span.args);
  }
  return out;
}

// The same by the standard library alone.
std::vector<Row> sorted_by_std(std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::make_tuple(std::get<0>(a), std::get<1>(a), -std::get<2>(a)) <
           std::make_tuple(std::get<0>(b), std::get<1>(b), -std::get<2>(b));
  });
  return rows;
}

std::vector<Row> many_rows(size_t count) {
  std::vector<Row> rows;
  uint64_t state = 1;
  const auto next = [&](uint64_t limit) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int64_t>((state >> 33) % limit);
  };
  for (size_t i = 0; i < count; ++i) {
    const int64_t start = next(50);
    rows.emplace_back(next(3),
                      start,
                      start + next(4),
                      "\"" + std::to_string(i) + "\"",
                      std::string(static_cast<size_t>(next(30)), 'x'));
  }
  return rows;
}

}  // namespace

TEST_CASE(
    "spans come by thread, start, and longest first; equals as they came") {
  const std::vector<Row> rows = many_rows(2'000);
  CHECK(sorted_by_us(rows, 1U << 20) == sorted_by_std(rows));
}

TEST_CASE("what does not fit in memory comes in the same order") {
  const std::vector<Row> rows = many_rows(3'000);
  CHECK(sorted_by_us(rows, 4'096) == sorted_by_std(rows));
  CHECK(sorted_by_us(rows, 100'000) == sorted_by_std(rows));
}

TEST_CASE("a span larger than the memory is kept") {
  std::vector<Row> rows = many_rows(100);
  rows.emplace_back(1, 2, 3, "\"big\"", std::string(200'000, 'y'));
  CHECK(sorted_by_us(rows, 4'096) == sorted_by_std(rows));
}

TEST_CASE("nothing gives nothing, and a bad place to spill is an error") {
  CHECK(sorted_by_us({}, 4'096).empty());
  SpanSorter sorter("/nowhere", 50);
  REQUIRE(sorter.add({1, 1, 1, "\"a\"", "{}"}));
  CHECK(sorter.add({1, 1, 1, "\"b\"", "{}"}).error().message ==
        "/nowhere: No such file or directory");
}
