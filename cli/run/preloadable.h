// Why a program may have recorded nothing: what its file says of whether ld.so
// would preload anything into it. For the one line that `shp run` prints then.
#pragma once

#include <string>
#include <string_view>

namespace shp {

// "it is statically linked, …", or "" when preloading should have worked.
// `command` is argv[0]: a path, or a name along `search_path`. Scripts are
// followed to their interpreter.
[[nodiscard]] std::string why_not_preloaded(const std::string& command,
                                            std::string_view search_path);

}  // namespace shp
