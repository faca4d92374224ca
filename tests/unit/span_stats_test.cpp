// What `shp stats` and `shp top` count. Values worked out by hand, percentiles
// from a sorted copy.
#include "cli/stats/span_stats.h"

#include <doctest/doctest.h>

#include <random>

using namespace shp;

namespace {

constexpr int64_t kThread = 8;

HostSpan span(const char* quoted_name,
              int64_t start_ns,
              int64_t end_ns,
              int64_t tid = kThread) {
  HostSpan one;
  one.tid = tid;
  one.start_ns = start_ns;
  one.duration_ns = end_ns - start_ns;
  one.name = quoted_name;
  return one;
}

NameRow row_of(const SpanStats& stats, const std::string& name) {
  for (const NameRow& row : stats.rows()) {
    if (row.name == name) {
      return row;
    }
  }
  FAIL("no row for ", name);
  return {};
}

// The value that `part` of them do not exceed, by sorting.
int64_t nearest_rank(std::vector<int64_t> values, double part) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(part * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

TEST_CASE("a percentile is right within 2 percent over nine decades") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0, 12);
  std::vector<int64_t> values;
  DurationHistogram histogram;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(static_cast<int64_t>(std::pow(10.0, exponent(random))));
    histogram.add(values.back());
  }
  for (const double part : {0.001, 0.1, 0.5, 0.9, 0.99, 0.9999}) {
    const auto expected = static_cast<double>(nearest_rank(values, part));
    const auto got = static_cast<double>(histogram.percentile(part));
    CAPTURE(part);
    CHECK(std::abs(got - expected) <= 0.02 * expected);
  }
  CHECK(histogram.min() == *std::min_element(values.begin(), values.end()));
  CHECK(histogram.max() == *std::max_element(values.begin(), values.end()));
}

TEST_CASE("small durations and extremes are exact") {
  DurationHistogram histogram;
  CHECK(histogram.percentile(0.5) == 0);
  CHECK(histogram.min() == 0);
  for (int64_t ns = 0; ns < 64; ++ns) {
    histogram.add(ns);
  }
  CHECK(histogram.percentile(0.5) == 31);
  CHECK(histogram.percentile(1.0) == 63);
  DurationHistogram one;
  one.add(INT64_MAX);
  CHECK(one.percentile(0.5) == INT64_MAX);
  one.add(0);  // below the first bucket
  CHECK(one.percentile(0.5) == 0);
  CHECK(one.max() == INT64_MAX);
}

TEST_CASE("a span's own time is what spans within it leave") {
  SpanStats stats;
  stats.set_window(1, 0, 1000);
  // outer [100, 900) holds two inner ones of 100 and 200, one of which
  // holds 50.
  stats.take(1, span(R"("inner")", 200, 300));
  stats.take(1, span(R"("leaf")", 450, 500));
  stats.take(1, span(R"("inner")", 400, 600));
  stats.take(1, span(R"("outer")", 100, 900));
  CHECK(row_of(stats, "outer").self_ns == 500);
  CHECK(row_of(stats, "inner").self_ns == 250);
  CHECK(row_of(stats, "leaf").self_ns == 50);
  CHECK(row_of(stats, "inner").total_ns == 300);
  CHECK(row_of(stats, "outer").thread_share == doctest::Approx(0.8));
  CHECK(row_of(stats, "inner").thread_share == doctest::Approx(0.3));
}

TEST_CASE("another thread's and an overlapping span take nothing away") {
  SpanStats stats;
  stats.set_window(1, 0, 1000);
  stats.take(1, span(R"("other")", 200, 300, kThread + 1));
  stats.take(1, span(R"("before")", 50, 400));
  stats.take(1, span(R"("over")", 100, 900));  // "before" sticks out of it
  CHECK(row_of(stats, "over").self_ns == 800);
}

TEST_CASE("nested spans of one name are one time of their thread") {
  SpanStats stats;
  stats.set_window(1, 0, 1000);
  stats.take(1, span(R"("f")", 300, 400));
  stats.take(1, span(R"("f")", 200, 500));
  stats.take(1, span(R"("f")", 100, 600));
  const NameRow row = row_of(stats, "f");
  CHECK(row.thread_share == doctest::Approx(0.5));
  CHECK(row.total_ns == 900);
  CHECK(row.self_ns == 500);
}

TEST_CASE("the share is that of the thread that gave most") {
  SpanStats stats;
  stats.set_window(1, 0, 1000);
  stats.set_window(2, 0, 1000);
  stats.take(1, span(R"("f")", 0, 100, 1));
  stats.take(1, span(R"("f")", 0, 300, 2));
  stats.take(2, span(R"("f")", 0, 200, 2));  // another process's thread 2
  const NameRow row = row_of(stats, "f");
  CHECK(row.thread_share == doctest::Approx(0.3));
  CHECK(row.threads == 3);
}

TEST_CASE("a span counts for a share from where the window begins") {
  SpanStats stats;
  stats.set_window(1, 1000, 500);
  stats.take(1, span(R"("inner")", 900, 1100));
  stats.take(1, span(R"("long")", 0, 1250));
  CHECK(row_of(stats, "long").thread_share == doctest::Approx(0.5));
  CHECK(row_of(stats, "inner").thread_share == doctest::Approx(0.2));
  CHECK(row_of(stats, "long").total_ns == 1250);
}

TEST_CASE("numbers are forgotten, nesting is not") {
  SpanStats stats;
  stats.set_window(1, 0, 100);
  stats.take(1, span(R"("inner")", 10, 60));
  stats.clear_numbers();
  CHECK(stats.rows().empty());
  stats.set_window(1, 100, 100);
  stats.take(1, span(R"("outer")", 0, 200));
  CHECK(stats.spans() == 1);
  CHECK(row_of(stats, "outer").self_ns == 150);
  CHECK(row_of(stats, "outer").thread_share == doctest::Approx(1.0));
}

TEST_CASE("ten thousand children of one parent are all taken off") {
  SpanStats stats;
  stats.set_window(1, 0, 1'000'000);
  for (int64_t i = 0; i < 10'000; ++i) {
    stats.take(1, span(R"("child")", 100 * i, 100 * i + 40));
  }
  stats.take(1, span(R"("parent")", 0, 1'000'000));
  CHECK(row_of(stats, "parent").self_ns == 600'000);
}

TEST_CASE("names read as a person wrote them") {
  SpanStats stats;
  stats.set_window(1, 0, 10);
  stats.take(1, span(R"("a\"\u00e9\n")", 0, 1));
  CHECK(stats.rows().front().name == "a\"\xc3\xa9\n");
}
