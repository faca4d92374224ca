// Functions that are recorded by name on CPython 3.12 and later: callbacks of
// sys.monitoring for just their code objects. Which code is called what is kept
// here; finding it and switching the events on is _functions.py's.
//
// A span is a slice of a thread's time in one function: from its start or
// resumption to its return, yield or unwinding. The open ones of a thread lie
// on a stack of its own (ThreadState::calls): callbacks are told of the code,
// not of the frame. GIL held.
#pragma once

#include "preload/python/cpython_api.h"

namespace shp::python {

// trace_code(code, name, capture, after): calls of `code` are spans `name`.
// capture(locals) gives their attributes, after(locals) is called when they
// return; each None or a callable.
PyObject* trace_code(PyObject* self,
                     PyObject* const* args,
                     Py_ssize_t count,
                     PyObject* keywords) noexcept;

// What sys.monitoring calls: (code, offset, ...).
PyObject* on_call_begin(PyObject* self,
                        PyObject* const* args,
                        Py_ssize_t count,
                        PyObject* keywords) noexcept;
PyObject* on_call_resume(PyObject* self,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* keywords) noexcept;
PyObject* on_call_return(PyObject* self,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* keywords) noexcept;
PyObject* on_call_leave(PyObject* self,
                        PyObject* const* args,
                        Py_ssize_t count,
                        PyObject* keywords) noexcept;

// The interpreter has ended and its objects with it.
void forget_calls() noexcept;

}  // namespace shp::python
