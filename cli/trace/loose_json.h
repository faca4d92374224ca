// JSON as traces have it: valid where it matters, odd elsewhere. Real ones hold
// invalid UTF-8, raw control characters, bad escapes and `inf`; viewers open
// them, so the tokenizer walks over them, by quotes and brackets only.
//
// Pure; any thread. Texts end at `end`, where a zero byte and 15 more readable
// ones must follow (window.h). Functions return the position behind the item,
// or null when the text ends inside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shp {

inline const char* skip_loose_space(const char* at, const char* end) {
  while (at < end && static_cast<unsigned char>(*at) <= ' ') {
    ++at;
  }
  return at;
}

// `at` is behind the opening quote.
const char* skip_loose_string(const char* at, const char* end);

// `at` is at "{" or "["; brackets are counted, not compared.
const char* skip_loose_nested(const char* at, const char* end);

// A value of any kind. A bare word or number ends before "," "}" "]" or space.
const char* skip_loose_value(const char* at, const char* end);

// An event's time in µs, a number or a quoted number with any number of
// decimals, as ns; further decimals are cut. Null when it is none or does not
// fit.
std::optional<int64_t> loose_ns(std::string_view token);

// An integer, quoted or not.
std::optional<int64_t> loose_int(std::string_view token);

// The text without quotes, escapes left as they are; empty when unquoted.
std::string_view loose_text(std::string_view token);

// The value of `key` among the members of the object `text`; empty when it
// has none. Good for objects that fit in memory; `text` need not be padded.
std::string_view loose_member(std::string_view text, std::string_view key);

}  // namespace shp
