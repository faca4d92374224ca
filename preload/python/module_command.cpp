#include "preload/python/module_command.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace shp::python {
namespace {

constexpr std::string_view kPackage = "service_host_profiling";

// What an argument of options ("-Im") does to the rest of the command line.
enum class Effect { kGoOn, kTakesNext, kModule, kStop };

// `module` gets what follows an "m" in the same word.
Effect read_options(const char* word, const char*& module) noexcept {
  if (word[0] != '-' || word[1] == '\0') {
    return Effect::kStop;  // a script, or standard input
  }
  if (word[1] == '-') {
    return std::strcmp(word, "--check-hash-based-pycs") == 0
               ? Effect::kTakesNext
               : Effect::kStop;
  }
  for (const char* letter = word + 1; *letter != '\0'; ++letter) {
    if (*letter == 'c') {
      return Effect::kStop;
    }
    if (*letter == 'X' || *letter == 'W') {
      return letter[1] == '\0' ? Effect::kTakesNext : Effect::kGoOn;
    }
    if (*letter == 'm') {
      module = letter + 1;
      return Effect::kModule;
    }
  }
  return Effect::kGoOn;
}

// execv of `shp` in the folder of this library plus `way`; returns on failure.
void try_beside(const char* way, char** arguments) noexcept {
  Dl_info where;
  char real[PATH_MAX];
  char program[2 * PATH_MAX];
  if (dladdr(reinterpret_cast<void*>(&module_command), &where) == 0 ||
      realpath(where.dli_fname, real) == nullptr) {
    return;
  }
  *std::strrchr(real, '/') = '\0';
  std::snprintf(program, sizeof(program), "%s%s/shp", real, way);
  execv(program, arguments);
}

}  // namespace

char** module_command(int argc, char** argv) noexcept {
  for (int i = 1; i < argc; ++i) {
    const char* module = "";
    switch (read_options(argv[i], module)) {
      case Effect::kGoOn:
        break;
      case Effect::kTakesNext:
        ++i;
        break;
      case Effect::kStop:
        return nullptr;
      case Effect::kModule:
        if (*module == '\0' && ++i < argc) {
          module = argv[i];
        }
        return module == kPackage ? argv + i + 1 : nullptr;
    }
  }
  return nullptr;
}

void become_shp(char** words) noexcept {
  static char name[] = "shp";
  char** arguments = words - 1;
  arguments[0] = name;
  for (const char* way : {"", "/../cli", "/../bin", "/../../bin"}) {
    try_beside(way, arguments);
  }
  execvp(name, arguments);
  static constexpr char kText[] =
      "service-host-profiling: the program shp is neither beside libshp.so nor "
      "on PATH\n";
  if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) {
    // Nobody is left to tell.
  }
  _exit(1);
}

}  // namespace shp::python
