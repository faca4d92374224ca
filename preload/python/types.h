// The module's two types, and the function `span` that makes one of them.
//
// Span: a context manager (and decorator) around a piece of code; may be
// entered again, also while it is open. Profiled: a function and a span around
// each of its calls; passes arguments on untouched, binds as a method like a
// function does, and carries the function's metadata in its __dict__
// (functools.update_wrapper, done in collector's profile). GIL held.
#pragma once

#include "preload/python/cpython_api.h"

namespace shp::python {

// New references; nullptr with an exception pending.
PyObject* make_span_type() noexcept;
PyObject* make_profiled_type() noexcept;

// span(name, attrs=None) -> Span
PyObject* new_span(PyObject* self,
                   PyObject* const* args,
                   Py_ssize_t count,
                   PyObject* keywords) noexcept;

// Types live as long as their interpreter.
void forget_types() noexcept;

}  // namespace shp::python
