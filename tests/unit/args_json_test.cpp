#include "preload/args_json.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace {

std::string encode(const std::vector<shp_arg>& args, size_t room = 256) {
  std::string buffer(room, '\0');
  return std::string(
      shp::recorder::encode_args(args, {buffer.data(), buffer.size()}));
}

shp_arg text(const char* key, const char* value) {
  shp_arg arg{key, SHP_STR, {}};
  arg.value.str = value;
  return arg;
}
shp_arg integer(const char* key, int64_t value) {
  shp_arg arg{key, SHP_I64, {}};
  arg.value.i64 = value;
  return arg;
}
shp_arg real(const char* key, double value) {
  shp_arg arg{key, SHP_F64, {}};
  arg.value.f64 = value;
  return arg;
}
shp_arg boolean(const char* key, int value) {
  shp_arg arg{key, SHP_BOOL, {}};
  arg.value.boolean = value;
  return arg;
}

}  // namespace

TEST_CASE("each type is written as JSON has it") {
  CHECK(encode({integer("n", -3),
                real("x", 0.1),
                boolean("on", 1),
                boolean("off", 0),
                text("s", "hi"),
                text("none", nullptr)}) ==
        R"({"n":-3,"x":0.1,"on":true,"off":false,"s":"hi","none":null})");
}

TEST_CASE("no attributes are an empty object") {
  CHECK(encode({}) == "{}");
}

TEST_CASE("quotes, backslashes and control characters are escaped") {
  CHECK(encode({text("k\"", "a\\b\n\x01")}) == R"({"k\"":"a\\b\u000a\u0001"})");
}

TEST_CASE("the widest integers and awkward doubles read back the same") {
  CHECK(encode({integer("min", std::numeric_limits<int64_t>::min())}) ==
        R"({"min":-9223372036854775808})");
  const std::string third = encode({real("x", 1.0 / 3.0)});
  CHECK(std::stod(third.substr(5)) == 1.0 / 3.0);
  CHECK(encode({real("x", 1e300)}) == R"({"x":1e+300})");
}

TEST_CASE("what is not a JSON number fails as a whole") {
  CHECK(encode({real("x", std::numeric_limits<double>::infinity())}).empty());
  CHECK(encode({real("x", std::numeric_limits<double>::quiet_NaN())}).empty());
  CHECK(encode({text(nullptr, "v")}).empty());
}

TEST_CASE("a buffer one byte too small fails, the exact size does not") {
  CHECK(encode({text("s", "hi")}, 10) == R"({"s":"hi"})");
  CHECK(encode({text("s", "hi")}, 9).empty());
}
