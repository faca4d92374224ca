// service_host_profiling._native: the module that holds the functions. The same
// PyInit__native serves the preloaded library (a builtin, see on_load.cpp) and
// the installed package (an ordinary extension).
#include "preload/python/native_module.h"

#include <dlfcn.h>

#include <cstring>
#include <iterator>

#include "preload/python/call_events.h"
#include "preload/python/embedded_sources.h"
#include "preload/python/lifecycle.h"
#include "preload/python/mark_calls.h"
#include "preload/python/span_calls.h"
#include "preload/python/symbol_lookup.h"
#include "preload/python/types.h"
#include "preload/python/zero_code.h"

namespace shp::python {
namespace {

PyObject* library_path(PyObject*, PyObject*) noexcept {
  Dl_info where;
  if (dladdr(reinterpret_cast<void*>(&library_path), &where) == 0 ||
      where.dli_fname == nullptr) {
    return none();
  }
  return py.PyUnicode_DecodeFSDefaultAndSize(
      where.dli_fname, static_cast<Py_ssize_t>(std::strlen(where.dli_fname)));
}

// embedded_source(module_name) -> (bytes, is_package) or None
PyObject* embedded_source(PyObject*, PyObject* name) noexcept {
  for (const EmbeddedSource& source : embedded_sources()) {
    if (!is_a(name, kTypeIsStr) ||
        py.PyUnicode_CompareWithASCIIString(name, source.module) != 0) {
      continue;
    }
    Ref both(py.PyTuple_New(2));
    Ref bytes(py.PyBytes_FromStringAndSize(
        source.text, static_cast<Py_ssize_t>(source.bytes)));
    if (!both || !bytes) {
      return nullptr;
    }
    py.PyTuple_SetItem(both.get(), 0, bytes.release());
    py.PyTuple_SetItem(both.get(),
                       1,
                       new_reference(source.is_package ? py._Py_TrueStruct
                                                       : py._Py_FalseStruct));
    return both.release();
  }
  return none();
}

template <typename Function>
void* address(Function* function) noexcept {
  return reinterpret_cast<void*>(function);
}

PyMethodDef g_methods[] = {
    {},  // span_start and span_end, chosen when the interpreter is known
    {},
    {"span",
     address(new_span),
     kMethodFastKeywords,
     "span(name, attrs=None)\n--\n\n"
     "A context manager and decorator that records a span."},
    {"instant",
     address(put_instant),
     kMethodFastKeywords,
     "instant(name, attrs=None)\n--\n\n"
     "Mark this point in time on this thread."},
    {"counter",
     address(put_counter),
     kMethodFastKeywords,
     "counter(name, value)\n--\n\n"
     "Say a value that holds from now on in this process."},
    {"start",
     address(lifecycle_start),
     kMethodFastKeywords,
     "start(output_dir, *, session_id=None)\n--\n\n"
     "Begin this process's session; return the path that stop() publishes."},
    {"stop",
     address(lifecycle_stop),
     kMethodFastKeywords,
     "stop()\n--\n\n"
     "End the session; return the path of the published file."},
    {"active",
     address(lifecycle_active),
     kMethodNoArgs,
     "active()\n--\n\nThe running session's (path, pid), or None."},
    {"lifecycle",
     address(lifecycle_lock),
     kMethodNoArgs,
     "lifecycle()\n--\n\nThe RLock that start and stop hold."},
    {"after_fork",
     address(lifecycle_after_fork),
     kMethodNoArgs,
     "after_fork()\n--\n\nForget the parent's session in a forked child."},
    {"at_exit",
     address(lifecycle_at_exit),
     kMethodNoArgs,
     "at_exit()\n--\n\nResolve the attributes of a session left open."},
    {"library_path",
     address(library_path),
     kMethodNoArgs,
     "library_path()\n--\n\nWhere this library was loaded from."},
    {"embedded_source",
     address(embedded_source),
     kMethodOneArg,
     "embedded_source(module)\n--\n\nIts (bytes, is_package), or None."},
    {}};

// os.register_at_fork(after_in_child=after_fork), atexit.register(at_exit):
// once a process and once an interpreter.
bool call_with(const char* module_name,
               const char* function_name,
               PyObject* positional,
               const char* option,
               PyObject* value) noexcept {
  const Ref module(py.PyImport_ImportModule(module_name));
  const Ref function(
      module ? py.PyObject_GetAttrString(module.get(), function_name)
             : nullptr);
  const Ref args(py.PyTuple_New(positional != nullptr ? 1 : 0));
  const Ref options(py.PyDict_New());
  if (!function || !args || !options) {
    return false;
  }
  if (positional != nullptr) {
    py.PyTuple_SetItem(args.get(), 0, new_reference(positional));
  }
  if (option != nullptr &&
      py.PyDict_SetItemString(options.get(), option, value) != 0) {
    return false;
  }
  return static_cast<bool>(
      Ref(py.PyObject_Call(function.get(), args.get(), options.get())));
}

bool g_registered = false;

// The interpreter is gone when this runs; another may be started later.
void forget_interpreter() {
  IdObjects::forget();
  NameCache::forget();
  spans().forget();
  forget_calls();
  forget_lifecycle();
  forget_types();
  g_registered = false;
}

bool register_callbacks(PyObject* module) noexcept {
  if (g_registered) {
    return true;
  }
  const Ref after_fork(py.PyObject_GetAttrString(module, "after_fork"));
  const Ref at_exit(py.PyObject_GetAttrString(module, "at_exit"));
  g_registered =
      after_fork && at_exit &&
      call_with("os",
                "register_at_fork",
                nullptr,
                "after_in_child",
                after_fork.get()) &&
      call_with("atexit", "register", at_exit.get(), nullptr, nullptr);
  return g_registered;
}

bool add_type(PyObject* module, const char* name, PyObject* type) noexcept {
  Ref owned(type);
  if (!owned || py.PyModule_AddObject(module, name, owned.get()) != 0) {
    return false;
  }
  static_cast<void>(owned.release());  // the module took it
  return true;
}

int refuse(const char* why) noexcept {
  py.PyErr_Format(*py.PyExc_ImportError, "service_host_profiling: %s", why);
  return -1;
}

int execute(PyObject* module) noexcept {
  if (py.current_interpreter() != py.PyInterpreterState_Main()) {
    return refuse("sub-interpreters are not supported");
  }
  const IntLayout layout = IdObjects::set_up();
  g_methods[0] = span_start_method(layout);
  g_methods[1] = span_end_method(layout);
  static bool exits = false;
  exits = exits || py.Py_AtExit(forget_interpreter) == 0;
  if (!set_up_lifecycle() || py.PyModule_AddFunctions(module, g_methods) != 0 ||
      py.PyModule_AddFunctions(module, zero_code_methods()) != 0 ||
      !add_type(module, "Span", make_span_type()) ||
      !add_type(module, "Profiled", make_profiled_type()) ||
      !register_callbacks(module)) {
    return -1;
  }
  return 0;
}

PyModuleDef_Slot g_slots[] = {{kModuleExec, reinterpret_cast<void*>(&execute)},
                              {},  // 3.12: that sub-interpreters are refused
                              {}};

PyModuleDef g_definition = {{1, nullptr},
                            nullptr,
                            0,
                            nullptr,
                            "_native",
                            "Spans of service_host_profiling.",
                            0,
                            nullptr,
                            g_slots,
                            nullptr,
                            nullptr,
                            nullptr};

}  // namespace

bool prepare_interpreter() noexcept {
  const char* problem = unsupported_build(find_loaded_symbol);
  if (problem == nullptr) {
    problem = load_cpython();
  }
  if (problem == nullptr) {
    return true;
  }
  // Not even this much may be there.
  using Raise = void (*)(PyObject*, const char*);
  const auto raise =
      reinterpret_cast<Raise>(dlsym(RTLD_DEFAULT, "PyErr_SetString"));
  auto** type =
      reinterpret_cast<PyObject**>(dlsym(RTLD_DEFAULT, "PyExc_ImportError"));
  if (raise != nullptr && type != nullptr) {
    raise(*type, problem);
  }
  return false;
}

PyObject* init_native() noexcept {
  if (!prepare_interpreter()) {
    return nullptr;
  }
  if (py.minor >= 12) {
    g_slots[1] = {kModuleMultipleInterpreters, nullptr};
  }
  return py.PyModuleDef_Init(&g_definition);
}

}  // namespace shp::python

extern "C" [[gnu::visibility("default")]] shp::python::PyObject*
PyInit__native() {
  return shp::python::init_native();
}
