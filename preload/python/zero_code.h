// Programs that nobody changed: what the environment asks for (SHP_TRACE,
// SHP_FOLLOW) is Python code of ours that must run in their interpreter. Here
// is how it gets in, and what it calls of the library beside spans.
//
// Nothing is written to site-packages and no hook stays behind where nothing is
// asked for. An audit hook would do, but one that is added before the
// interpreter starts is freed by another allocator than made it (`python -X
// dev` aborts, 3.8 to 3.13). So the initialiser of `_stat` is taken, a builtin
// that every `os` imports when the interpreter is up and before the program is.
#pragma once

#include "preload/python/cpython_api.h"

namespace shp::python {

// From the library's constructor, behind PyImport_AppendInittab.
void watch_start() noexcept;

// Functions of _native for _functions.py and _follow_torch.py.
PyMethodDef* zero_code_methods() noexcept;

}  // namespace shp::python
