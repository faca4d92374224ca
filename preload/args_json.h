// Typed attributes to the text of a JSON object. Any thread; allocates nothing:
// it writes into the caller's buffer.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#define SHP_TYPES_ONLY
#include "preload/shp.h"

namespace shp::recorder {

// The text inside `buffer`, or an empty view when it does not fit, a double is
// not finite, or a key is null. Invalid UTF-8 goes through: the daemon judges.
std::string_view encode_args(std::span<const shp_arg> args,
                             std::span<char> buffer) noexcept;

}  // namespace shp::recorder
