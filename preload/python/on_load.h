// What the library does when it is loaded into a process: in a CPython process
// that has not started its interpreter yet, it makes `service_host_profiling`
// importable; in any other it does nothing.
//
// Called once from the library's constructor (entry.cpp), before main, on the
// only thread. Allocates nothing itself, writes no environment, runs no Python.
#pragma once

namespace shp::python {

void on_load() noexcept;

}  // namespace shp::python
