#include "preload/python/on_load.h"

#include "preload/python/module_command.h"
#include "preload/python/native_module.h"
#include "preload/python/symbol_lookup.h"
#include "preload/python/zero_code.h"

namespace shp::python {
namespace {

template <typename Function>
Function* find(const char* name) noexcept {
  return reinterpret_cast<Function*>(find_loaded_symbol(name));
}

}  // namespace

void on_load(int argc, char** argv) noexcept {
  using Append = int(const char*, PyObject* (*)());
  using IsInitialized = int();
  Append* append = find<Append>("PyImport_AppendInittab");
  if (append == nullptr) {
    return;  // not Python, or loaded later than this library
  }
  // The table must not be touched any more once the interpreter runs (3.12 ends
  // the process for it); this is then an extension that the package loads.
  const auto is_initialized = find<IsInitialized>("Py_IsInitialized");
  if (unsupported_build(find_loaded_symbol) != nullptr ||
      is_initialized == nullptr || is_initialized() != 0) {
    return;
  }
  if (char** words = module_command(argc, argv); words != nullptr) {
    become_shp(words);
  }
  append("service_host_profiling", [] { return init_package(); });
  append("service_host_profiling._native", [] { return init_native(); });
  watch_start();
}

}  // namespace shp::python
