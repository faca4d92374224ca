// What the library's constructor does for Python.
#pragma once

namespace shp::python {

// Called once, from the constructor of libshp.so. In a process that has no
// CPython in it when it starts this is one look-up of a symbol.
void on_load() noexcept;

}  // namespace shp::python
