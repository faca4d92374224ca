#include "common/jsonl/json_check.h"

#include <doctest/doctest.h>

#include <charconv>
#include <string>
#include <vector>

using namespace shp;

TEST_CASE("JSON values are taken as RFC 8259 has them") {
  for (const char* text : {"{}",
                           "[]",
                           " [1, -2.5e+3, 0, -0.0, 1E9] ",
                           "{\"a\":{\"b\":[true,false,null]}}",
                           "\"\\u00e4\\n\\\\\\\"\\/\\b\\f\\r\\t\"",
                           "\"\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80\"",
                           "\"\\ud800\"",
                           "\"sixteen bytes and a few more, all plain\""}) {
    CAPTURE(text);
    CHECK(is_json(text));
  }
}

TEST_CASE("what is not JSON is refused") {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "[1 2]",
                           "[}",
                           "{]",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "-",
                           "inf",
                           "NaN",
                           "nul",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\n\"",
                           "\"\\",
                           "{} {}",
                           "\"\x80\"",
                           "\"\xc0\xaf\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xe4\xb8\""}) {
    CAPTURE(text);
    CHECK_FALSE(is_json(text));
  }
}

TEST_CASE("nesting is bounded and needs no stack") {
  const std::string deep(512, '[');
  const std::string close(512, ']');
  CHECK(is_json(deep + close));
  CHECK_FALSE(is_json("[" + deep + close + "]"));
  CHECK_FALSE(is_json(std::string(10'000'000, '[')));
}

TEST_CASE("integers are read exactly or not at all") {
  CHECK(json_int("0") == 0);
  CHECK(json_int("-7") == -7);
  CHECK(json_int("9223372036854775807") == INT64_MAX);
  CHECK(json_int("-9223372036854775808") == INT64_MIN);
  for (const char* text :
       {"", "-", "1.0", "1e3", "007", "9223372036854775808", "1 ", "true"}) {
    CAPTURE(text);
    CHECK_FALSE(json_int(text));
  }
}

TEST_CASE("integers of any length are what the standard library reads") {
  for (size_t digits = 1; digits <= 21; ++digits) {
    for (size_t odd = 0; odd <= digits; ++odd) {
      for (const char c : std::string("0159/:;@ \xb5,")) {
        std::string text =
            std::string("123456789987654321999").substr(0, digits);
        text.insert(odd, 1, c);
        CAPTURE(text);
        int64_t expected = 0;
        const auto [behind, problem] =
            std::from_chars(text.data(), text.data() + text.size(), expected);
        const char* at = text.data();
        const std::optional<int64_t> got =
            scan_json_int(at, text.data() + text.size());
        const bool good = problem == std::errc() &&
                          !(text[0] == '0' && behind - text.data() > 1);
        REQUIRE(got.has_value() == good);
        if (good) {
          CHECK(*got == expected);
          CHECK(at == behind);
        }
      }
    }
  }
}

TEST_CASE("strings are unescaped to UTF-8") {
  CHECK(json_unescape("\"a\\u00e4\\n\\\"\\\\\"") == "a\xc3\xa4\n\"\\");
  CHECK(json_unescape("\"\\ud83d\\ude00\"") == "\xf0\x9f\x98\x80");
  CHECK(json_unescape("\"\\ud83dx\"") == "\xef\xbf\xbdx");
  CHECK(json_unescape("\"\\u0000\"") == std::string(1, '\0'));
}

TEST_CASE("quoting gives JSON whatever the bytes are") {
  CHECK(json_quote("a\"b\\c\n") == "\"a\\\"b\\\\c\\u000a\"");
  CHECK(json_quote("\xc3\xa4\xff") == "\"\xc3\xa4\xef\xbf\xbd\"");
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(is_json(json_quote(std::string(1, static_cast<char>(byte)))));
  }
}

TEST_CASE("members come in order, with their keys unescaped") {
  std::vector<std::string> seen;
  for_each_member(" { \"a\" : [1, 2] , \"\\u0062\":{\"x\":1},\"a\":3 } ",
                  [&](std::string_view key, std::string_view value) {
                    seen.push_back(std::string(key) + "=" + std::string(value));
                    return true;
                  });
  CHECK(seen == std::vector<std::string>{"a=[1, 2]", "b={\"x\":1}", "a=3"});
}
