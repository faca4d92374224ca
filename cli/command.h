// One subcommand of `shp`: how main.cpp's table and the cmd_<verb>.cpp files
// meet. Each verb registers its options and a callback; the callback runs the
// verb and stores the process's exit status.
//
// Exit status: 0 done, 1 failed (one line "shp VERB: what: where: why" on
// stderr), 2 usage. `shp run` gives its child's.
#pragma once

namespace CLI {
class App;
}

namespace shp {

// Adds the verb to `app`; `status` outlives the parse.
using AddCommand = void (*)(CLI::App& app, int& status);

void add_run(CLI::App& app, int& status);
void add_status(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_top(CLI::App& app, int& status);
void add_stats(CLI::App& app, int& status);
void add_export(CLI::App& app, int& status);
void add_merge_dir(CLI::App& app, int& status);

}  // namespace shp
