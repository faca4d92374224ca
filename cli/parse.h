// From a command line to an exit status: the one place where usage errors are
// worded.
#pragma once

namespace CLI {
class App;
}

namespace shp {

// Parses and runs the verb that `argv` names. Gives 2, with one line on stderr,
// for bad usage; 0 for --help and --version; otherwise what the verb left in
// `status`.
[[nodiscard]] int parse_and_run(CLI::App& app,
                                int argc,
                                char** argv,
                                const int& status);

}  // namespace shp
