// Starts shpd for this user, detached from the program that records.
#pragma once

#include "common/base/result.h"

namespace shp::recorder {

// $SHP_DAEMON, else `shpd` beside libshp.so, in ../bin, ../daemon or
// ../libexec/shp from it. The new process is no child that the program could
// see: it raises no SIGCHLD and no wait() returns it. It inherits no
// descriptor and no LD_PRELOAD, and ends when idle. Returns once it was
// started, not once it answers.
Status spawn_daemon();

}  // namespace shp::recorder
