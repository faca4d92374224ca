// Supervisor: whoever started this shpd and starts it again when it dies, and
// meanwhile holds the descriptors that it was given: systemd, or a keeper
// (keeper.h) where there is no systemd. Both are spoken to in systemd's words
// (sd_notify(3)). Without either, nothing is held.
//
// Any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/named_fd.h"

namespace shp {

class Supervisor {
 public:
  // `keeper`: a socket to one, empty for systemd (by $NOTIFY_SOCKET) or nobody.
  explicit Supervisor(UniqueFd keeper);

  // Says "READY=1" and the like, with a descriptor where one goes along.
  void tell(std::string_view state, int fd = -1) const;

  // -1 when it is no keeper.
  int keeper() const { return keeper_.get(); }

 private:
  UniqueFd keeper_;
};

// Whether systemd is to be told and holds our descriptors.
[[nodiscard]] bool under_systemd();

// What we were started with: sockets and stored descriptors of systemd
// (sd_listen_fds(3)), or those of an image of us that gave way to this one.
// Close-on-exec. Clears the environment variables, so call it once.
[[nodiscard]] std::vector<NamedFd> take_inherited();

// Replaces this process by `program` with `arguments`, which finds `entries` by
// take_inherited(). Returns only when it fails.
void exec_with(const char* program,
               const std::vector<std::string>& arguments,
               const std::vector<std::pair<std::string, int>>& entries);

// How often WATCHDOG=1 is to be sent, in ns; 0: never.
[[nodiscard]] int64_t watchdog_interval_ns();

}  // namespace shp
