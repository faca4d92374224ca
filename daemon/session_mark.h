// SessionMark: what a session needs beside CommitRecord (arena_abi.h) to be
// gone on with by another daemon, in the arena's daemon area. Written by the
// session's thread; read by one that takes the arena over.
//
// The client can write here too. Nothing here is more than a count, a time or a
// length of that client's own file, so a lie costs only its author.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/shm/arena_abi.h"

namespace shp {

struct SessionMark {
  // The arena's counters and our clock's shift when the session began.
  uint64_t no_ring;
  uint64_t bad_name;
  uint64_t bad_args;
  uint64_t names_lost;
  uint64_t lost_marks;
  int64_t clock_shift_ns;
  // Whose they are; stored last (release). 0: nobody's.
  std::atomic<uint32_t> generation;
  uint32_t reserved;

  // Beside CommitRecord's halves, and chosen by commit_index as they are.
  struct Half {
    uint32_t generation;  // the session of this commit
    uint32_t sequence;    // commits of the session, from 1
    uint64_t latest_end_ticks;
    ClockSample clock;  // the last that spans were converted by
  } half[2];
};
static_assert(sizeof(SessionMark) <= kPageBytes);

}  // namespace shp
