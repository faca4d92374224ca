// What the library does when it is loaded into a process: in a CPython process
// that has not started its interpreter yet, it makes `service_host_profiling`
// importable; in any other it does nothing.
//
// Called once from the library's constructor (entry.cpp), before main, on the
// only thread. Allocates nothing itself, writes no environment, runs no Python.
#pragma once

namespace shp::python {

// The program's arguments; with `python -m service_host_profiling WORDS…` the
// process becomes `shp WORDS…` here and this does not return.
void on_load(int argc, char** argv) noexcept;

}  // namespace shp::python
