// A steady load for sustained_bench.py: THREADS threads, each RATE spans a
// second for SECONDS seconds, in bursts of 100. Prints the number of spans it
// ended.
//
//   rate_load DIRECTORY THREADS RATE SECONDS

#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "preload/shp.h"

namespace {

constexpr int kBurst = 100;

void sleep_until(int64_t at_ns) {
  const timespec at{at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

int64_t load(int64_t rate, int64_t seconds) {
  static const shp::Name name("steady");
  const int64_t begin = shp::monotonic_ns();
  const int64_t bursts = rate * seconds / kBurst;
  for (int64_t i = 0; i < bursts; ++i) {
    for (int k = 0; k < kBurst; ++k) {
      const shp::Span span(name);
    }
    const int64_t due = begin + (i + 1) * kBurst * 1'000'000'000 / rate;
    if (due - shp::monotonic_ns() > 200'000) {
      sleep_until(due);
    }
  }
  return bursts * kBurst;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || shp_start(argv[1], nullptr) != 0) {
    return 1;
  }
  std::atomic<int64_t> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    threads.emplace_back(
        [&] { ended += load(std::atoll(argv[3]), std::atoll(argv[4])); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  char path[4096];
  if (shp_stop(path, sizeof(path)) != 0) {
    return 1;
  }
  std::printf("%lld\n", static_cast<long long>(ended.load()));
  return 0;
}
