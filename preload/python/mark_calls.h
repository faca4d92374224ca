// instant(name, attrs=None) and counter(name, value), as Python calls them.
//
// GIL held, on any thread. Neither raises for what it is given: a bad name, bad
// attributes or a value that is no number are counted, and warned of once at
// stop(). Attributes are encoded in the call.
#pragma once

#include "preload/python/cpython_api.h"

namespace shp::python {

PyObject* put_instant(PyObject* self,
                      PyObject* const* args,
                      Py_ssize_t count,
                      PyObject* keywords) noexcept;
PyObject* put_counter(PyObject* self,
                      PyObject* const* args,
                      Py_ssize_t count,
                      PyObject* keywords) noexcept;

// The session's generation for a call that is no span's; a process under
// SHP_OUTPUT_DIR starts its session here. 0: nothing records.
uint32_t generation_or_start() noexcept;

}  // namespace shp::python
