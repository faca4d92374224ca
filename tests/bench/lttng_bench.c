/* A pair of LTTng-UST tracepoints, in the same bursts as span_bench.cpp: the
 * peer that cost_bench.py compares with. Prints "lttng_pair NS". */

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lttng/shp_peer.h"

enum { kBurst = 1000, kMaxBursts = 10000 };

static int64_t now_ns(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void burst(void) {
  for (uint32_t i = 0; i < kBurst; ++i) {
    lttng_ust_tracepoint(shp_peer, span_begin, 7);
    lttng_ust_tracepoint(shp_peer, span_end, 7);
  }
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  static double costs[kMaxBursts];
  int bursts = argc > 1 ? atoi(argv[1]) : 300;
  if (bursts < 1 || bursts > kMaxBursts) {
    return 2;
  }
  const struct timespec rest = {0, 2000000};
  for (int i = 0; i < bursts; ++i) {
    nanosleep(&rest, NULL);
    burst();
    const int64_t begin = now_ns();
    burst();
    costs[i] = (double)(now_ns() - begin) / kBurst;
  }
  qsort(costs, (size_t)bursts, sizeof(costs[0]), compare);
  printf("lttng_pair %.2f\n", costs[bursts / 2]);
  return 0;
}
