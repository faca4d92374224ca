// Whether bytes are UTF-8 as RFC 3629 has it: no overlong forms, surrogates or
// values past U+10FFFF. For names, texts and args that came from elsewhere.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace shp {

// Bytes of the well-formed sequence that `text` begins with (1 to 4), 0 when it
// begins with none. `text` is not empty.
[[nodiscard]] size_t utf8_sequence_bytes(std::string_view text) noexcept;

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace shp
