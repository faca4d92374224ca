// What systemd and a service say to each other, by the protocol and without a
// library: sockets that it opened (sd_listen_fds(3)), and our state
// (sd_notify(3)). All of it is nothing when systemd did not start us.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/unique_fd.h"

namespace shp {

// Listening sockets that were handed to us, close-on-exec. Clears the
// environment variables, so call it once.
[[nodiscard]] std::vector<UniqueFd> take_activation_sockets();

// Sends "READY=1" and the like to $NOTIFY_SOCKET.
void notify_systemd(std::string_view state);

// How often WATCHDOG=1 is to be sent, in ns; 0: never.
[[nodiscard]] int64_t watchdog_interval_ns();

}  // namespace shp
