// Arguments of a METH_FASTCALL | METH_KEYWORDS function by its signature, with
// the TypeErrors that a function written in Python would raise.
#pragma once

#include "preload/python/cpython_api.h"

namespace shp::python {

struct Signature {
  const char* function;
  const char* names[3];  // positional ones first
  int positional;        // how many may be given by position
  int required;          // how many of them must be given
  int total;             // keyword-only ones included
};

// Borrowed references into `out`, nullptr where none was given. False: raised.
bool parse_arguments(const Signature& signature,
                     PyObject* const* args,
                     Py_ssize_t count,
                     PyObject* keywords,
                     PyObject** out) noexcept;

}  // namespace shp::python
