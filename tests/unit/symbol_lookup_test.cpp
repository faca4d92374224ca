#include "preload/python/symbol_lookup.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "preload/python/cpython_api.h"

using shp::python::find_loaded_symbol;
using shp::python::unsupported_build;

TEST_CASE("what dlsym finds is found at the same place") {
  for (const char* name : {"getenv",
                           "pthread_create",
                           "dl_iterate_phdr",
                           "_ZTVN10__cxxabiv117__class_type_infoE"}) {
    CAPTURE(name);
    CHECK(find_loaded_symbol(name) == dlsym(RTLD_DEFAULT, name));
    CHECK(find_loaded_symbol(name) != nullptr);
  }
}

TEST_CASE("what is not there is not found, and dlerror is not touched") {
  dlerror();
  CHECK(find_loaded_symbol("PyImport_AppendInittab") == nullptr);
  CHECK(find_loaded_symbol("") == nullptr);
  CHECK(dlerror() == nullptr);
}

namespace {

const char* g_present = "";
void* only_present(const char* name) {
  static char somewhere;
  return std::strstr(g_present, name) != nullptr ? &somewhere : nullptr;
}

}  // namespace

TEST_CASE("interpreters with other object headers are refused in words") {
  g_present = "PySys_AddAuditHook";
  CHECK(unsupported_build(only_present) == nullptr);
  g_present = "";
  CHECK(std::string(unsupported_build(only_present)) ==
        "CPython 3.8 or later is needed");
  g_present = "PySys_AddAuditHook _Py_DecRefShared";
  CHECK(std::string(unsupported_build(only_present)) ==
        "free-threaded builds of CPython are not supported");
  g_present = "PySys_AddAuditHook PyModule_Create2TraceRefs";
  CHECK(std::string(unsupported_build(only_present)) ==
        "Py_TRACE_REFS builds of CPython are not supported");
}
