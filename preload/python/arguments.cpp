#include "preload/python/arguments.h"

namespace shp::python {
namespace {

bool type_error(PyObject* message) noexcept {
  const Ref owned(message);
  if (owned) {
    py.PyErr_SetObject(*py.PyExc_TypeError, owned.get());
  }
  return false;
}

bool too_many(const Signature& signature, Py_ssize_t given) noexcept {
  const char* were = given == 1 ? "was" : "were";
  if (signature.required == signature.positional) {
    return type_error(py.PyUnicode_FromFormat(
        "%s() takes %d positional argument%s but %zd %s given",
        signature.function,
        signature.positional,
        signature.positional == 1 ? "" : "s",
        given,
        were));
  }
  return type_error(py.PyUnicode_FromFormat(
      "%s() takes from %d to %d positional arguments but %zd %s given",
      signature.function,
      signature.required,
      signature.positional,
      given,
      were));
}

bool take_keyword(const Signature& signature,
                  PyObject* name,
                  PyObject* value,
                  PyObject** out) noexcept {
  for (int i = 0; i < signature.total; ++i) {
    if (py.PyUnicode_CompareWithASCIIString(name, signature.names[i]) != 0) {
      continue;
    }
    if (out[i] != nullptr) {
      return type_error(
          py.PyUnicode_FromFormat("%s() got multiple values for argument '%s'",
                                  signature.function,
                                  signature.names[i]));
    }
    out[i] = value;
    return true;
  }
  return type_error(
      py.PyUnicode_FromFormat("%s() got an unexpected keyword argument '%U'",
                              signature.function,
                              name));
}

}  // namespace

bool parse_arguments(const Signature& signature,
                     PyObject* const* args,
                     Py_ssize_t count,
                     PyObject* keywords,
                     PyObject** out) noexcept {
  if (count > signature.positional) {
    return too_many(signature, count);
  }
  for (int i = 0; i < signature.total; ++i) {
    out[i] = i < count ? args[i] : nullptr;
  }
  const Py_ssize_t named = keywords == nullptr ? 0 : py.PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (!take_keyword(
            signature, py.PyTuple_GetItem(keywords, i), args[count + i], out)) {
      return false;
    }
  }
  for (int i = 0; i < signature.required; ++i) {
    if (out[i] == nullptr) {
      return type_error(py.PyUnicode_FromFormat(
          "%s() missing 1 required positional argument: '%s'",
          signature.function,
          signature.names[i]));
    }
  }
  return true;
}

}  // namespace shp::python
