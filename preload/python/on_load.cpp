#include "preload/python/on_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "preload/python/native_module.h"
#include "preload/python/symbol_lookup.h"

namespace shp::python {
namespace {

constexpr const char* kPackage = "service_host_profiling";
constexpr const char* kNative = "service_host_profiling._native";

template <typename Function>
Function* find(const char* name) noexcept {
  return reinterpret_cast<Function*>(find_loaded_symbol(name));
}

// True when the command line has `-m service_host_profiling`, in one word or
// two. Too much said is no harm: the hook looks again.
bool asks_for_package() noexcept {
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  char words[4096];
  const ssize_t got = read(fd, words, sizeof(words));
  close(fd);
  return got > 0 &&
         std::string_view(words, static_cast<size_t>(got)).find(kPackage) !=
             std::string_view::npos;
}

// runpy asks importlib for the package without importing it, and the builtin's
// spec says "no package" until it has been imported (3.8 … 3.14). So it is
// imported just before.
int before_run_module(const char* event, PyObject*, void*) {
  if (std::strcmp(event, "cpython.run_module") != 0) {
    return 0;
  }
  if (const char* problem = load_cpython(); problem != nullptr) {
    return 0;
  }
  const Ref module(py.PyImport_ImportModule(kPackage));
  if (!module) {
    py.PyErr_Clear();  // runpy meets it again and reports it
  }
  return 0;
}

}  // namespace

void on_load() noexcept {
  using Append = int(const char*, PyObject* (*)());
  using IsInitialized = int();
  using AddHook = int(int (*)(const char*, PyObject*, void*), void*);
  Append* append = find<Append>("PyImport_AppendInittab");
  if (append == nullptr) {
    return;  // not Python, or loaded later than this library
  }
  const auto is_initialized = find<IsInitialized>("Py_IsInitialized");
  const auto add_hook = find<AddHook>("PySys_AddAuditHook");
  // The table must not be touched any more once the interpreter runs (3.12 ends
  // the process for it); this is then an extension that the package loads.
  if (unsupported_build(find_loaded_symbol) != nullptr ||
      is_initialized == nullptr || is_initialized() != 0) {
    return;
  }
  append(kPackage, [] { return init_package(); });
  append(kNative, [] { return init_native(); });
  if (asks_for_package()) {
    add_hook(before_run_module, nullptr);
  }
}

}  // namespace shp::python
