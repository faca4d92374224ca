// start, stop and what integrations ask of the running session, as Python
// functions. Control path: they take the module's RLock
// (`collector._lifecycle`) as the predecessor's did, and let other threads run
// while the daemon works.
#pragma once

#include "preload/python/cpython_api.h"

namespace shp::python {

// start(output_dir, *, session_id=None) -> Path
PyObject* lifecycle_start(PyObject* self,
                          PyObject* const* args,
                          Py_ssize_t count,
                          PyObject* keywords) noexcept;
// stop() -> Path
PyObject* lifecycle_stop(PyObject* self,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* keywords) noexcept;
// active() -> (Path, pid) or None
PyObject* lifecycle_active(PyObject* self, PyObject*) noexcept;
// lifecycle() -> the RLock
PyObject* lifecycle_lock(PyObject* self, PyObject*) noexcept;
// In a forked child: nothing of the parent's session is ours, its lock neither.
PyObject* lifecycle_after_fork(PyObject* self, PyObject*) noexcept;

// When the interpreter ends: callables of a session that nobody stopped.
PyObject* lifecycle_at_exit(PyObject* self, PyObject*) noexcept;

// Makes the lock. False: an exception is pending.
bool set_up_lifecycle() noexcept;
void forget_lifecycle() noexcept;

}  // namespace shp::python
