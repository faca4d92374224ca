// The library's only output: one line on stderr, and only when SHP_LOG is set
// (and not "0"). Control path; keeps errno.
#pragma once

#include <string_view>

namespace shp::recorder {

// "libshp[PID]: WHAT: DETAIL"
void log_line(std::string_view what, std::string_view detail) noexcept;

}  // namespace shp::recorder
