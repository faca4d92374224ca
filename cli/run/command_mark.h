// "shp run -o out python3 app.py -o x": the command begins at the first word
// that is no option of ours, and everything behind it is the command's, "-o x"
// too. The parser would take that for ours, so the "--" that a careful user
// types is put there for the others. Called by main before it parses.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shp {

// The words behind the program's name, last first, as the parser takes them.
// Nothing is put in where the verb is another or "--" is there.
[[nodiscard]] std::vector<std::string> marked_arguments(
    const CLI::App& app, int argc, const char* const* argv);

}  // namespace shp
