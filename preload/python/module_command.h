// `python -m service_host_profiling WORDS…` in a preloaded process: found out
// from the command line before the interpreter starts, and answered by the
// program shp in its place.
//
// Not by way of the interpreter, because runpy asks importlib for the package
// without importing it, and a builtin that was not imported yet is no package
// to it (3.8 … 3.14). An audit hook at cpython.run_module could import it, but
// one that is added before the interpreter starts is freed by another
// allocator than made it, which ends the process under `-X dev`.
#pragma once

namespace shp::python {

// The words after the module's name, with room for one before them; nullptr
// when the command line is another. Reads options as CPython's getopt does.
char** module_command(int argc, char** argv) noexcept;

// Runs shp, beside this library or on PATH, with these words. Exits with 1 and
// a line on stderr when there is none.
[[noreturn]] void become_shp(char** words) noexcept;

}  // namespace shp::python
