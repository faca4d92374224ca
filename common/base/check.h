// SHP_CHECK: for bugs only, in programs that we own (shpd, shp, tests).
// Never for input, and shared memory, messages and files are input; never in
// preload/, which must not end somebody else's process.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SHP_CHECK(condition)                                                \
  do {                                                                      \
    if (!(condition)) [[unlikely]] {                                        \
      std::fprintf(                                                         \
          stderr, "shp: bug: %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                         \
    }                                                                       \
  } while (false)
