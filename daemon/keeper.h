// Keeper: the supervisor of a shpd that systemd did not start. The first
// process of `shpd`; the daemon proper, the worker, is its child. It does
// nothing but hold descriptors and start the next worker when one was killed,
// so there is little in it that could go wrong.
//
//   keeper ──fork──► worker      "FDSTORE=1…" + descriptor, "FDSTOREREMOVE=1…"
//     ▲                │ ◄────── SOCK_SEQPACKET pair; its end is either's death
//     └── exec ────────┘         a worker without a keeper becomes one
//
// Signals: SIGTERM, SIGINT and SIGHUP go on to the worker, and the keeper ends
// with it, with its exit status. SIGUSR1 makes it exec its program anew,
// sessions and all: an upgrade.
#pragma once

#include <vector>

#include "daemon/named_fd.h"
#include "daemon/options.h"

namespace shp {

// Runs shpd under a keeper to its end. The exit status.
[[nodiscard]] int run_kept(const Options& options,
                           std::vector<NamedFd> inherited);

}  // namespace shp
