// The options and the words that `shp top` and `shp stats` share.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shp {

// --sort; `column` outlives the parse and holds the default.
void add_sort_option(CLI::App& verb, std::string& column);

// What the columns mean, for the end of a help text.
extern const char* const kColumnsHelp;

}  // namespace shp
