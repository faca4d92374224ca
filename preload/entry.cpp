// What happens when libshp.so is loaded and when the program ends: as good as
// nothing. No thread, no socket, no allocation, no wait.

#include <sys/auxv.h>

#include <cstdlib>
#include <cstring>

#include "preload/fork_wipe.h"
#include "preload/inject/environment.h"
#include "preload/python/on_load.h"
#include "preload/recorder.h"

namespace {

namespace recorder = shp::recorder;

// glibc gives constructors what it gives main.
[[gnu::constructor]] void on_load(int argc, char** argv, char**) {
  // A program that runs with another user's rights does not take its orders
  // from our environment variables.
  if (getauxval(AT_SECURE) != 0) {
    recorder::g_process.disabled = true;
    return;
  }
  const char* enable = std::getenv("HOST_SERVICE_PROFILER_ENABLE");
  const char* output = std::getenv("SHP_OUTPUT_DIR");
  recorder::g_process.disabled =
      enable != nullptr && std::strcmp(enable, "0") == 0;
  recorder::g_process.starts_by_itself =
      !recorder::g_process.disabled && output != nullptr && output[0] != '\0';
  if (recorder::g_process.starts_by_itself) {
    recorder::wipe_on_fork();
  }
  recorder::g_process.live.store(recorder::g_process.starts_by_itself ? 1 : 0,
                                 std::memory_order_relaxed);
  if (!recorder::g_process.disabled) {
    shp::inject::point_variables_here();
  }
  shp::python::on_load(argc, argv);
}

// One store: the daemon sees the process end and takes it from here that the
// end was an orderly one.
[[gnu::destructor]] void on_unload() {
  if (recorder::g_wiped.gate.load(std::memory_order_relaxed) != nullptr) {
    recorder::running_arena().header->exiting.store(1,
                                                    std::memory_order_relaxed);
  }
}

}  // namespace
