// The two modules of this library, as CPython's init functions make them. GIL
// held.
#pragma once

#include "preload/python/cpython_api.h"

namespace shp::python {

// Finds the interpreter's functions. False: an ImportError is pending that says
// why this interpreter cannot be served.
bool prepare_interpreter() noexcept;

// service_host_profiling._native
PyObject* init_native() noexcept;

// service_host_profiling itself, as a builtin: a package whose modules come out
// of this library (package_module.cpp).
PyObject* init_package() noexcept;

// Runs a module's source out of the library in a namespace of its own, which
// comes back; empty with an exception pending (or none: no such module).
Ref run_embedded(const char* module) noexcept;

}  // namespace shp::python
