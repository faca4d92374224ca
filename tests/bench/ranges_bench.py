"""What an NVTX range costs (a push and a pop of a text) when it is recorded and
when nothing records, against the floor of a span: two readings of the CPU's
counter and a 32-byte store.

    ranges_bench.py [--small] [--check]

One process measures both in turns; medians of bursts of 1000. --check exits with 1 when a
recorded range costs more than 1.5 floors, or one that is not recorded 3 ns.
"""

import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from shp_testing import (Daemon, SOURCE, compile_program, run,  # noqa: E402
                         traced_environment)

PROGRAM = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
void nvtx_copy_load(void);
void nvtx_copy_push(const char* name);
void nvtx_copy_pop(void);

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static uint64_t ring[4096 * 4] __attribute__((aligned(64)));

static void floor_of(long n) {
  for (long i = 0; i < n; ++i) {
    uint64_t* at = &ring[(i & 4095) * 4];
    const uint64_t start = __rdtsc();
    __asm__ volatile("" ::: "memory");
    at[0] = 1;
    at[1] = start;
    at[2] = __rdtsc();
    at[3] = (uint64_t)i;
    __asm__ volatile("" ::: "memory");
  }
}
static void ranges(long n) {
  for (long i = 0; i < n; ++i) {
    nvtx_copy_push("run_batch");
    nvtx_copy_pop();
  }
}
static double per(void (*f)(long), long n) {
  const int64_t begin = now();
  f(n);
  return (double)(now() - begin) / (double)n;
}
int main(int argc, char** argv) {
  const int rounds = atoi(argv[1]);
  const long n = atol(argv[2]);
  (void)argc;
  nvtx_copy_load();
  ranges(1000);
  floor_of(1000);
  for (int i = 0; i < rounds; ++i) {
    ranges(n); /* warms the caches after the pause */
    const double range = per(ranges, n);
    printf("[%f, %f]\n", per(floor_of, n), range);
    usleep(2000); /* the daemon drains between bursts, as it does in a server */
  }
  return 0;
}
"""


def medians(program, environment, rounds, count):
    result = run([program, rounds, count], env=environment)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [statistics.median(column) for column in zip(*rows)]


def main():
    small = "--small" in sys.argv
    rounds, count = (50, 1000) if small else (1000, 1000)
    with tempfile.TemporaryDirectory(prefix="shp-bench-") as folder:
        folder = pathlib.Path(folder)
        (folder / "bench.c").write_text(PROGRAM)
        program = compile_program(
            folder / "bench.c", folder / "bench",
            SOURCE / "tests" / "support" / "programs" / "nvtx_copy.c", "-ldl")
        with Daemon(folder) as daemon:
            plain = traced_environment(daemon)
            off = traced_environment(daemon, SHP_INJECT="nvtx")
            on = dict(off, SHP_OUTPUT_DIR=str(folder / "out"))
            none = medians(program, plain, rounds, count)
            idle = medians(program, off, rounds, count)
            floor, recorded = medians(program, on, rounds, count)
    print(f"  a range that is recorded      {recorded:6.1f} ns, "
          f"{recorded / floor:.2f} x two counter readings and a store "
          f"({floor:.1f} ns)")
    print(f"  a range while nothing records {idle[1]:6.1f} ns "
          f"(without an injection {none[1]:.1f} ns)")
    missed = recorded > 1.5 * floor or idle[1] - none[1] > 3
    return 1 if missed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
