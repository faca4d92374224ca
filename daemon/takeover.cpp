// How one shpd follows another: taking its sessions over, and leaving ours to
// the next. Part of Daemon; main thread.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "daemon/daemon.h"
#include "daemon/reply.h"

namespace shp {

// A session that a shpd before us began.
void Daemon::go_on_with(SessionRequest request) {
  next_kept_ = std::max(next_kept_, request.kept_as + 1);
  UniqueFd life_line(dup_cloexec(request.life_line.get()));
  const Status launched =
      launch(std::move(request), std::move(life_line), nullptr);
  if (!launched) {
    spdlog::error("a session is not gone on with: {}",
                  launched.error().message);
  }
}

// Another shpd goes on at once: everything is as it would be had we been
// killed, which is a state like any other.
void Daemon::give_way() {
  spdlog::info("gives way: {} sessions go on in another shpd",
               sessions_.size());
  std::_Exit(0);
}

// Without a keeper we become one, over a worker that is started by it. Nobody
// may come to end us then, so that we end by ourselves when idle.
void Daemon::keeper_ended() {
  unwatch(supervisor_.keeper());
  if (shutdown_ends_ns_ != 0) {
    return;
  }
  spdlog::error("the keeper was killed; a new one goes on with {} sessions",
                sessions_.size());
  std::vector<std::string> arguments = options_.arguments;
  if (options_.exit_when_idle_s == 0) {
    arguments.insert(arguments.end(), {"--exit-when-idle", "10"});
  }
  exec_with(options_.program.c_str(), arguments, store_.entries());
  spdlog::error("{} cannot be run: nobody will go on if this ends",
                options_.program);
}

}  // namespace shp
