#include "common/jsonl/json_text.h"

#include <doctest/doctest.h>

#include <string>

#include "common/base/utf8.h"
#include "common/jsonl/decimal.h"

namespace shp {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(text, &out);
  return out;
}

// The object as it would stand in a line, or "bad".
std::string object(std::string_view text) {
  std::string out = "x";
  if (!append_json_object(text, &out)) {
    CHECK(out == "x");
    return "bad";
  }
  return out.substr(1);
}

std::string nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) {
    text += R"({"a":)";
  }
  return text + "1" + std::string(static_cast<size_t>(depth), '}');
}

TEST_CASE("a string is quoted and escapes what JSON says it must") {
  CHECK(quoted("step") == R"("step")");
  CHECK(quoted("") == R"("")");
  CHECK(quoted("a\"b\\c/d") == R"("a\"b\\c/d")");
  CHECK(quoted("\n\r\t\b\f") == R"("\n\r\t\b\f")");
  CHECK(quoted(std::string_view("\x01\x1f\x7f\0", 4)) ==
        "\"\\u0001\\u001f\x7f\\u0000\"");
  CHECK(quoted("gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82") ==
        "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82\"");
}

TEST_CASE("bytes that are not UTF-8 become replacement characters") {
  const std::string fffd = "\xef\xbf\xbd";
  CHECK(quoted("a\xff z") == "\"a" + fffd + " z\"");
  CHECK(quoted("\xc3") == "\"" + fffd + "\"");
  // A surrogate, an overlong slash, a value past U+10FFFF.
  CHECK(quoted("\xed\xa0\x80") == "\"" + fffd + fffd + fffd + "\"");
  CHECK(quoted("\xc0\xaf") == "\"" + fffd + fffd + "\"");
  CHECK(quoted("\xf4\x90\x80\x80") == "\"" + fffd + fffd + fffd + fffd + "\"");
}

TEST_CASE("utf-8 is told from what only looks like it") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("plain text of more than eight bytes"));
  CHECK(is_utf8("\xe2\x82\xac\xf4\x8f\xbf\xbf"));
  CHECK_FALSE(is_utf8("12345678\x80"));
  CHECK_FALSE(is_utf8("\xe0\x9f\xbf"));
  CHECK_FALSE(is_utf8("\xf0\x8f\xbf\xbf"));
  CHECK_FALSE(is_utf8("\xe2\x82"));
}

TEST_CASE("an object loses its white space and nothing else") {
  CHECK(object("{}") == "{}");
  CHECK(object(" { } ") == "{}");
  CHECK(object("{\"a\": 1,\n \"b\" :\t[true, false , null]}\r\n") ==
        R"({"a":1,"b":[true,false,null]})");
  CHECK(object(R"({"a":{"b":[[],{}]},"c":" x "})") ==
        R"({"a":{"b":[[],{}]},"c":" x "})");
  CHECK(
      object(R"({"n":[0,-0,-1.5e+10,1E-2,123456789012345678901234567890]})") ==
      R"({"n":[0,-0,-1.5e+10,1E-2,123456789012345678901234567890]})");
  CHECK(object(R"({"s":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude42"})") ==
        R"({"s":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude42"})");
}

TEST_CASE("what is no object, or more than one, is bad") {
  for (const std::string_view text : {"",
                                      " ",
                                      "1",
                                      "[]",
                                      "\"a\"",
                                      "null",
                                      "{}{}",
                                      "{} x",
                                      "{",
                                      "}",
                                      R"({"a":1)",
                                      R"({"a":1}})",
                                      R"({"a"})",
                                      R"({"a":})",
                                      R"({a:1})",
                                      R"({"a":1,})",
                                      R"({,"a":1})",
                                      R"({"a" 1})",
                                      R"({"a":1 "b":2})",
                                      R"({"a":[1,]})",
                                      R"({"a":[1 2]})",
                                      R"({"a":[1})",
                                      R"({"a":{1]})",
                                      R"({'a':1})",
                                      R"({1:1})"}) {
    CAPTURE(text);
    CHECK(object(text) == "bad");
  }
}

TEST_CASE("scalars that JSON does not have are bad") {
  for (const std::string_view value : {"NaN",
                                       "Infinity",
                                       "-Infinity",
                                       "inf",
                                       "01",
                                       "+1",
                                       "1.",
                                       ".5",
                                       "1e",
                                       "1e+",
                                       "-",
                                       "0x10",
                                       "tru",
                                       "True",
                                       "nul",
                                       "--1",
                                       "1.e5"}) {
    CAPTURE(value);
    CHECK(object("{\"a\":" + std::string(value) + "}") == "bad");
  }
}

TEST_CASE("strings that would break a line or a reader are bad") {
  CHECK(object("{\"a\":\"x\ny\"}") == "bad");
  CHECK(object(std::string_view("{\"a\":\"\0\"}", 9)) == "bad");
  CHECK(object("{\"a\":\"\xff\"}") == "bad");
  CHECK(object("{\"\xc3\":1}") == "bad");
  CHECK(object(R"({"a":"\x41"})") == "bad");
  CHECK(object(R"({"a":"\u12g4"})") == "bad");
  CHECK(object(R"({"a":"\u12"})") == "bad");
  CHECK(object(R"({"a":"\ud800"})") == "bad");
  CHECK(object(R"({"a":"\udc00"})") == "bad");
  CHECK(object(R"({"a":"\ud800\u0041"})") == "bad");
  CHECK(object(R"({"a":"\)") == "bad");
  CHECK(object(R"({"a":"open)") == "bad");
}

TEST_CASE("nesting is bounded") {
  CHECK(object(nested(256)) == nested(256));
  CHECK(object(nested(257)) == "bad");
  CHECK(object("{\"a\":" + std::string(100'000, '[')) == "bad");
}

TEST_CASE("integers become their digits") {
  const auto digits = [](auto value) {
    char text[64];
    return std::string(text, put_decimal(text, value));
  };
  CHECK(digits(uint64_t{0}) == "0");
  CHECK(digits(uint64_t{9}) == "9");
  CHECK(digits(uint64_t{10}) == "10");
  CHECK(digits(uint64_t{99'999'999}) == "99999999");
  CHECK(digits(uint64_t{100'000'000}) == "100000000");
  CHECK(digits(uint64_t{1'000'000'007}) == "1000000007");
  CHECK(digits(uint64_t{9'999'999'999'999'999}) == "9999999999999999");
  CHECK(digits(uint64_t{10'000'000'000'000'000}) == "10000000000000000");
  CHECK(digits(UINT64_MAX) == "18446744073709551615");
  CHECK(digits(INT64_MIN) == "-9223372036854775808");
  CHECK(digits(int64_t{-1}) == "-1");
  uint64_t power = 1;
  for (int i = 1; i < 20; ++i, power *= 10) {
    CHECK(digits(power) == std::to_string(power));
    CHECK(digits(power - 1) == std::to_string(power - 1));
  }
}

}  // namespace
}  // namespace shp
