// Text by way of another thread: all of it, in order, and its failures.

#include "cli/trace/background_sink.h"

#include <doctest/doctest.h>

#include <string>

using namespace shp;

namespace {

class Keeping : public TextSink {
 public:
  Status write(std::string_view text) override {
    if (kept.size() + text.size() > room) {
      return error("no room");
    }
    kept += text;
    return {};
  }
  Status finish() override { return error("is not ours to finish"); }

  std::string kept;
  size_t room = ~size_t{0};
};

}  // namespace

TEST_CASE("what is written arrives whole and in order") {
  for (const size_t count : {size_t{0}, size_t{3}, size_t{700'000}}) {
    Keeping behind;
    std::string expected;
    BackgroundSink sink(behind);
    for (size_t i = 0; i < count; ++i) {
      const std::string text = std::to_string(i) + ",";
      expected += text;
      REQUIRE(sink.write(text));
    }
    REQUIRE(sink.finish());
    CHECK(behind.kept == expected);
    REQUIRE(sink.write("more"));
    REQUIRE(sink.finish());
    CHECK(behind.kept == expected + "more");
  }
}

TEST_CASE(
    "a failure of the sink behind comes to light at the latest at the end") {
  for (const size_t room : {size_t{0}, size_t{5'000'000}}) {
    Keeping behind;
    behind.room = room;
    BackgroundSink sink(behind);
    bool failed = false;
    for (int i = 0; i < 100; ++i) {
      failed = failed || !sink.write(std::string(100'000, 'x'));
    }
    failed = failed || !sink.finish();
    CHECK(failed);
  }
}

TEST_CASE("a sink that is given up leaves no thread") {
  Keeping behind;
  BackgroundSink sink(behind);
  REQUIRE(sink.write(std::string(3'000'000, 'x')));
}
