#include "preload/inject/environment.h"

#include <dlfcn.h>
#include <limits.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "preload/log.h"

namespace shp::inject {
namespace {

struct Api {
  const char* word;      // in SHP_INJECT
  const char* variable;  // that the annotation library reads
  const char* next;      // where what it held is kept
  // Without its variable mstx looks for our function in the process itself.
  bool found_by_itself;
};
constexpr Api kApis[] = {
    {"nvtx", "NVTX_INJECTION64_PATH", "SHP_NEXT_NVTX", false},
    {"itt", "INTEL_LIBITTNOTIFY64", "SHP_NEXT_ITT", false},
    {"mstx", "MSTX_INJECTION_PATH", "SHP_NEXT_MSTX", true},
};

bool has_word(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    const size_t end = list.find(',');
    if (list.substr(0, end) == word) {
      return true;
    }
    list = end == std::string_view::npos ? std::string_view()
                                         : list.substr(end + 1);
  }
  return false;
}

// The same file, under whatever name.
bool is_here(const char* path, const char* own) noexcept {
  char real[PATH_MAX];
  return std::strcmp(path, own) == 0 ||
         (realpath(path, real) != nullptr && std::strcmp(real, own) == 0);
}

void point_here(const Api& api, const char* own) noexcept {
  const char* held = std::getenv(api.variable);
  const bool taken = held != nullptr && held[0] != '\0';
  if (taken && is_here(held, own)) {
    return;  // by our parent, or by the user
  }
  if (taken) {
    setenv(api.next, held, 1);
  } else if (api.found_by_itself) {
    return;
  }
  setenv(api.variable, own, 1);
}

}  // namespace

bool asked_for(const char* api) noexcept {
  const char* asked = std::getenv("SHP_INJECT");
  return asked != nullptr && has_word(asked, api);
}

void point_variables_here() noexcept {
  const char* asked = std::getenv("SHP_INJECT");
  Dl_info where;
  char own[PATH_MAX];
  if (asked == nullptr || asked[0] == '\0' ||
      dladdr(reinterpret_cast<void*>(&point_variables_here), &where) == 0 ||
      realpath(where.dli_fname, own) == nullptr) {
    return;
  }
  for (const Api& api : kApis) {
    if (has_word(asked, api.word)) {
      point_here(api, own);
    }
  }
}

void* next_injection(const char* name, const char* symbol) noexcept {
  const char* path = std::getenv(name);
  if (path == nullptr || path[0] == '\0') {
    return nullptr;
  }
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  void* found = library != nullptr ? dlsym(library, symbol) : nullptr;
  if (found == nullptr) {
    const char* why = dlerror();
    recorder::log_line(name, why != nullptr ? why : path);
  }
  return found;
}

}  // namespace shp::inject
