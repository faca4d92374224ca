// This process's one arena: made at its first session, kept for its life.
// Under the session lock.
#pragma once

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp::recorder {

// Makes it unless this process (not a parent that forked it) has one, gives it
// the names, and lets span calls find its gate. SHP_MEMORY (MiB) and SHP_FULL
// ("wait:MS") are read here.
Status ensure_arena();

// The same descriptor under a number that programs which count on low ones, or
// close a range of them, are less likely to meet.
UniqueFd move_high(UniqueFd fd);

}  // namespace shp::recorder
