#include "preload/python/cpython_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace shp::python {

CPython py{};

namespace {

template <typename Pointer>
bool find(const char* name, Pointer& out) noexcept {
  out = reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, name));
  return out != nullptr;
}

const char* find_everything() noexcept {
#define SHP_FIND(result, name, parameters)      \
  if (!find(#name, py.name)) {                  \
    return "this CPython does not have " #name; \
  }
  SHP_CPYTHON_FUNCTIONS(SHP_FIND)
#undef SHP_FIND
#define SHP_FIND(type, name)                    \
  if (!find(#name, py.name)) {                  \
    return "this CPython does not have " #name; \
  }
  SHP_CPYTHON_OBJECTS(SHP_FIND)
#undef SHP_FIND
  // 3.8 has it with an underscore only.
  if (!find("PyInterpreterState_Get", py.current_interpreter) &&
      !find("_PyInterpreterState_Get", py.current_interpreter)) {
    return "this CPython does not have PyInterpreterState_Get";
  }
  return nullptr;
}

}  // namespace

const char* unsupported_build(void* (*find_symbol)(const char*)) noexcept {
  if (find_symbol("PySys_AddAuditHook") == nullptr) {
    return "CPython 3.8 or later is needed";
  }
  if (find_symbol("_Py_DecRefShared") != nullptr) {
    return "free-threaded builds of CPython are not supported";
  }
  if (find_symbol("PyModule_Create2TraceRefs") != nullptr) {
    return "Py_TRACE_REFS builds of CPython are not supported";
  }
  return nullptr;
}

const char* load_cpython() noexcept {
  static const char* problem = "";
  if (problem != nullptr && *problem == '\0') {
    problem = find_everything();
    if (problem == nullptr) {
      const char* version = py.Py_GetVersion();
      py.minor =
          std::strncmp(version, "3.", 2) == 0 ? std::atoi(version + 2) : 99;
      py.none_counts_references = py.minor < 12;
    }
  }
  return problem;
}

PyObject* call_by_tuple(PyObject* callable,
                        PyObject* const* args,
                        size_t count_and_flag,
                        PyObject* keywords) noexcept {
  const auto count =
      static_cast<Py_ssize_t>(count_and_flag & ~kVectorcallOffsetFlag);
  Ref positional(py.PyTuple_New(count));
  if (!positional) {
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    py.PyTuple_SetItem(positional.get(), i, new_reference(args[i]));
  }
  if (keywords == nullptr) {
    return py.PyObject_Call(callable, positional.get(), nullptr);
  }
  Ref named(py.PyDict_New());
  if (!named) {
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < py.PyTuple_Size(keywords); ++i) {
    if (py.PyDict_SetItem(named.get(),
                          py.PyTuple_GetItem(keywords, i),
                          args[count + i]) != 0) {
      return nullptr;
    }
  }
  return py.PyObject_Call(callable, positional.get(), named.get());
}

}  // namespace shp::python
