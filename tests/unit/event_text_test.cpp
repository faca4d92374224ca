#include "cli/trace/event_text.h"

#include <doctest/doctest.h>

using namespace shp;

namespace {

std::string us(int64_t ns) {
  std::string out;
  append_us(out, ns);
  return out;
}

}  // namespace

TEST_CASE("ns are written as µs with three decimals") {
  CHECK(us(0) == "0.000");
  CHECK(us(7) == "0.007");
  CHECK(us(1'234'567) == "1234.567");
  CHECK(us(-1) == "-0.001");
  CHECK(us(-1'500) == "-1.500");
  CHECK(us(INT64_MAX) == "9223372036854775.807");
  CHECK(us(INT64_MIN) == "-9223372036854775.808");
}

TEST_CASE("a slice has the file's base and pid as they are written there") {
  TimeStyle style;
  style.base_ns = 1'000'000;
  std::string out;
  append_slice(
      out, style, {"7", 8}, "\"step\"", 1'002'500, 1'003'000, R"({"i":1})");
  CHECK(out ==
        R"({"ph":"X","cat":"shp","name":"step","pid":7,"tid":8,"ts":2.500,)"
        R"("dur":0.500,"args":{"i":1}})");
}

TEST_CASE("an async pair shares an id, its own track") {
  std::string out;
  append_async_pair(out, {}, {"\"7\"", 8}, 31, "\"a\"", 1'000, 2'000, "{}");
  CHECK(
      out ==
      R"({"ph":"b","cat":"shp","name":"a","pid":"7","tid":8,"id2":{"local":"0x1f"},)"
      R"("ts":1.000,"args":{}})"
      ",\n"
      R"({"ph":"e","cat":"shp","name":"a","pid":"7","tid":8,"id2":{"local":"0x1f"},)"
      R"("ts":2.000})");
}

TEST_CASE("where times are strings ours are too") {
  TimeStyle style;
  style.quoted = true;
  std::string out;
  append_unfinished(out, style, {"7", 8}, "\"a\"", 1'736'408'883'688'177'930);
  CHECK(out == R"({"ph":"i","cat":"shp","name":"a","pid":7,"tid":8,"s":"t",)"
               R"("ts":"1736408883688177.930","args":{"unfinished":true}})");
}

TEST_CASE("a metadata event names a row") {
  std::string out;
  append_metadata(out, {"7", 8}, "\"thread_name\"", "name", "\"w\"");
  CHECK(out == R"({"ph":"M","cat":"shp","name":"thread_name","pid":7,"tid":8,)"
               R"("args":{"name":"w"}})");
}
