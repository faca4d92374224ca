// Text that others wrote (a program's command line, a span's name, a path that
// a daemon tells), made safe to print on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shp {

// `text` with a '?' for each control character (C0, DEL and C1, which move
// cursors and change titles and colours), and at most `width` bytes (0: all of
// them) in whole code points.
[[nodiscard]] std::string for_terminal(std::string_view text, size_t width = 0);

// Prints "shp VERB: MESSAGE" on stderr: one line, safe for a terminal.
void say_error(std::string_view verb, std::string_view message);

}  // namespace shp
