// Strict JSON as text: is this a whole JSON value, where does it end, what are
// an object's members. Nothing is decoded or copied, so that a host file's
// names and args can go into a trace byte for byte once they were checked.
//
// For line_reader.* and whoever else reads host files; any thread; pure. Input
// is not trusted: RFC 8259 and valid UTF-8, nesting up to kMaxJsonDepth, no
// recursion. A `const char*` that comes back is the position behind the item,
// null when the text is not one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shp {

inline constexpr int kMaxJsonDepth = 512;

const char* skip_json_space(const char* at, const char* end);

// `at` is at the opening quote.
const char* check_json_string(const char* at, const char* end);
const char* check_json_value(const char* at, const char* end);

// True when `text` is one JSON value and nothing else but white space.
bool is_json(std::string_view text);

// An integer without fraction or exponent that fits 64 bits; `at` moves behind
// it. The caller checks what follows.
std::optional<int64_t> scan_json_int(const char*& at, const char* end);
std::optional<int64_t> json_int(std::string_view text);

// The characters that a JSON string (quotes included) stands for, in UTF-8. A
// lone surrogate becomes U+FFFD.
std::string json_unescape(std::string_view quoted);

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become
// U+FFFD.
std::string json_quote(std::string_view text);

// Calls `member(key, value)` for each member of an object that is_json(); the
// key is unescaped, the value is its text. Stops when `member` says false.
using JsonMember =
    std::function<bool(std::string_view key, std::string_view value)>;
void for_each_member(std::string_view object, const JsonMember& member);

}  // namespace shp
