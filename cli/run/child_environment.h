// What the recorded program finds in its environment: ours added, the user's
// kept. Pure: strings in, strings out. Called by `shp run` before it forks.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shp {

using Environment = std::vector<std::string>;  // "NAME=value"
using Variables = std::vector<std::pair<std::string, std::string>>;

// The user's LD_PRELOAD with `library` in it once: before everything but the
// runtimes of the sanitizers, which refuse to start unless they come first.
[[nodiscard]] std::string preload_value(std::string_view users,
                                        std::string_view library);

// `current` (null-ended, as environ) with each of `changes` set in place of
// what was there.
[[nodiscard]] Environment with_variables(const char* const* current,
                                         const Variables& changes);

}  // namespace shp
