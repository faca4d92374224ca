// Text that becomes part of a JSON line: strings escaped, and objects that a
// client sent checked and copied without white space. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace shp {

// Deepest nesting that an object of a client may have.
inline constexpr int kMaxArgsDepth = 256;

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8
// become U+FFFD each; only what JSON says must be escaped is.
void append_json_string(std::string_view text, std::string* out);

// Appends the JSON object `text` to `out` without white space between tokens.
// False, and `out` as it was, when `text` is not one whole RFC 8259 object in
// valid UTF-8, is deeper than kMaxArgsDepth, or escapes half a surrogate pair.
[[nodiscard]] bool append_json_object(std::string_view text, std::string* out);

}  // namespace shp
