#include "preload/python/zero_code.h"

#include <cstdlib>
#include <cstring>

#include "preload/log.h"
#include "preload/python/call_events.h"
#include "preload/python/native_module.h"
#include "preload/python/span_state.h"
#include "preload/python/symbol_lookup.h"
#include "preload/python/text.h"
#include "preload/recorder.h"

namespace shp::python {
namespace {

using InitModule = PyObject* (*)();

struct InittabEntry {
  const char* name;
  InitModule init;
};

InitModule g_real_init = nullptr;
bool g_watching = false;

bool is_main_interpreter() noexcept {
  return py.current_interpreter() == py.PyInterpreterState_Main();
}

// An interpreter that cannot be worked with goes on without us.
void begin() noexcept {
  if (g_watching || load_cpython() != nullptr || !is_main_interpreter()) {
    return;
  }
  g_watching = true;
  if (!run_embedded("service_host_profiling._start_watch")) {
    py.PyErr_Clear();
    recorder::log_line("SHP_TRACE", "cannot watch this interpreter's imports");
  }
}

PyObject* init_stat() noexcept {
  begin();
  return g_real_init();
}

bool asked_for() noexcept {
  for (const char* name : {"SHP_TRACE", "SHP_FOLLOW"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && value[0] != '\0') {
      return true;
    }
  }
  return false;
}

PyObject* log_text(PyObject*,
                   PyObject* const* args,
                   Py_ssize_t count,
                   PyObject*) noexcept {
  if (count == 2 && is_a(args[0], kTypeIsStr) && is_a(args[1], kTypeIsStr)) {
    recorder::log_line(Text(args[0]).view(), Text(args[1]).view());
  }
  return none();
}

PyObject* count_bad_args(PyObject*, PyObject* reason) noexcept {
  if (recorder::recording() != 0 && is_a(reason, kTypeIsStr)) {
    recorder::running_arena().header->bad_args.fetch_add(
        1, std::memory_order_relaxed);
    spans().bad_args.note(Text(reason).view());
  }
  return none();
}

template <typename Function>
void* address(Function* function) noexcept {
  return reinterpret_cast<void*>(function);
}

PyMethodDef g_methods[] = {
    {"trace_code", address(trace_code), kMethodFastKeywords, nullptr},
    {"on_call_begin", address(on_call_begin), kMethodFastKeywords, nullptr},
    {"on_call_resume", address(on_call_resume), kMethodFastKeywords, nullptr},
    {"on_call_return", address(on_call_return), kMethodFastKeywords, nullptr},
    {"on_call_leave", address(on_call_leave), kMethodFastKeywords, nullptr},
    {"log", address(log_text), kMethodFastKeywords, nullptr},
    {"count_bad_args", address(count_bad_args), kMethodOneArg, nullptr},
    {}};

}  // namespace

void watch_start() noexcept {
  if (!asked_for() || recorder::g_process.disabled) {
    return;
  }
  // What PyImport_AppendInittab has made, on the heap.
  auto** table =
      static_cast<InittabEntry**>(find_loaded_symbol("PyImport_Inittab"));
  if (table == nullptr || *table == nullptr) {
    return;
  }
  for (InittabEntry* entry = *table; entry->name != nullptr; ++entry) {
    if (std::strcmp(entry->name, "_stat") == 0) {
      g_real_init = entry->init;
      entry->init = [] { return init_stat(); };
      return;
    }
  }
}

PyMethodDef* zero_code_methods() noexcept {
  return g_methods;
}

}  // namespace shp::python
