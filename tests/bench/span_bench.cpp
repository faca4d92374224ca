// What one span costs in a C++ program, against the floor of two counter reads
// and one 32-byte store in the same run. Prints "NAME NS" lines; cost_bench.py
// runs it under libshp.so with a daemon draining, and compares.
//
// Bursts of kBurst spans with pauses between, so that the daemon keeps up and
// nothing measured is a dropped span; cost_bench.py checks that in the file.
// Each figure is the median over bursts of (burst time / kBurst).

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/base/clock.h"
#include "preload/shp.h"

namespace {

constexpr int kBurst = 1000;

struct alignas(32) FloorRecord {
  uint64_t start;
  uint64_t end;
  uint64_t name;
  uint64_t id;
};
FloorRecord g_buffer[kBurst];

void pause_ms(long ms) {
  const timespec pause{0, ms * 1'000'000};
  nanosleep(&pause, nullptr);
}

template <typename Burst>
void measure(const char* name, int bursts, long rest_ms, Burst burst) {
  std::vector<double> costs;
  for (int i = 0; i < bursts; ++i) {
    pause_ms(rest_ms);
    burst();  // warms caches and the branch predictor after the pause
    const int64_t begin = shp::monotonic_ns();
    burst();
    const int64_t end = shp::monotonic_ns();
    costs.push_back(static_cast<double>(end - begin) / kBurst);
  }
  std::sort(costs.begin(), costs.end());
  std::printf("%s %.2f\n", name, costs[costs.size() / 2]);
  std::fflush(stdout);
}

void floor_burst() {
  for (int i = 0; i < kBurst; ++i) {
    const uint64_t start = shp::hardware_ticks();
    const uint64_t end = shp::hardware_ticks();
    g_buffer[i] = {start, end, 7, static_cast<uint64_t>(i)};
    asm volatile("" ::: "memory");
  }
}

void text_burst() {
  for (int i = 0; i < kBurst; ++i) {
    const shp_span span = shp_span_start("bench span");
    shp_span_end(span);
  }
}

void name_burst() {
  static const shp::Name name("bench span");
  for (int i = 0; i < kBurst; ++i) {
    const shp::Span span(name);
  }
}

void args_burst() {
  for (int i = 0; i < kBurst; ++i) {
    const shp::Span span("bench args", {{"batch", i}, {"ok", true}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* directory = argc > 1 ? argv[1] : nullptr;
  const int bursts = argc > 2 ? std::atoi(argv[2]) : 300;
  measure("floor", bursts, 0, floor_burst);
  measure("idle_text", bursts, 0, text_burst);
  measure("idle_name", bursts, 0, name_burst);
  if (directory == nullptr) {
    return 0;
  }
  if (shp_start(directory, nullptr) != 0) {
    char why[512];
    shp_last_error(why, sizeof(why));
    std::fprintf(stderr, "span_bench: %s\n", why);
    return 1;
  }
  for (int round = 0; round < 3; ++round) {
    measure("floor", bursts / 3, 2, floor_burst);
    measure("span_text", bursts / 3, 2, text_burst);
    measure("span_name", bursts / 3, 2, name_burst);
  }
  measure("span_args", bursts / 3, 4, args_burst);
  char path[4096];
  if (shp_stop(path, sizeof(path)) != 0) {
    std::fprintf(stderr, "span_bench: stop failed\n");
    return 1;
  }
  std::printf("file %s\n", path);
  return 0;
}
