// `import service_host_profiling` with nothing installed: the builtin runs
// _embedded.py, which makes the module a package and serves its submodules.
#include <dlfcn.h>

#include <cstring>

#include "preload/python/embedded_sources.h"
#include "preload/python/native_module.h"

namespace shp::python {
namespace {

constexpr const char* kLoaderModule = "service_host_profiling._embedded";

// Its `install`.
Ref loader_install() noexcept {
  const Ref globals = run_embedded(kLoaderModule);
  PyObject* install =
      globals ? py.PyDict_GetItemString(globals.get(), "install") : nullptr;
  return install != nullptr ? Ref::borrow(install) : Ref();
}

int execute(PyObject* module) noexcept {
  const Ref install = loader_install();
  const Ref done(install ? call(install.get(), &module, 1, nullptr) : nullptr);
  if (!done && py.PyErr_Occurred() == nullptr) {
    py.PyErr_SetString(*py.PyExc_ImportError,
                       "service_host_profiling: the library is incomplete");
  }
  return done ? 0 : -1;
}

PyModuleDef_Slot g_slots[] = {
    {kModuleExec, reinterpret_cast<void*>(&execute)}, {}, {}};

PyModuleDef g_definition = {{1, nullptr},
                            nullptr,
                            0,
                            nullptr,
                            "service_host_profiling",
                            nullptr,
                            0,
                            nullptr,
                            g_slots,
                            nullptr,
                            nullptr,
                            nullptr};

}  // namespace

const EmbeddedSource* find_embedded(const char* module) noexcept {
  for (const EmbeddedSource& source : embedded_sources()) {
    if (std::strcmp(source.module, module) == 0) {
      return &source;
    }
  }
  return nullptr;
}

Ref run_embedded(const char* module) noexcept {
  const EmbeddedSource* source = find_embedded(module);
  Ref globals(py.PyDict_New());
  if (source == nullptr || !globals ||
      py.PyDict_SetItemString(
          globals.get(), "__builtins__", py.PyEval_GetBuiltins()) != 0) {
    return Ref();
  }
  const Ref name(py.PyUnicode_FromStringAndSize(
      module, static_cast<Py_ssize_t>(std::strlen(module))));
  const Ref code(py.Py_CompileString(
      source->text, "<service_host_profiling>", kFileInput));
  if (!code || !name ||
      py.PyDict_SetItemString(globals.get(), "__name__", name.get()) != 0) {
    return Ref();
  }
  const Ref result(
      py.PyEval_EvalCode(code.get(), globals.get(), globals.get()));
  return result ? std::move(globals) : Ref();
}

PyObject* init_package() noexcept {
  if (!prepare_interpreter()) {
    return nullptr;
  }
  if (py.minor >= 12) {
    g_slots[1] = {kModuleMultipleInterpreters, nullptr};
  }
  return py.PyModuleDef_Init(&g_definition);
}

}  // namespace shp::python
