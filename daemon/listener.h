// Listener: the socket that clients find, made so that of several daemons that
// start at once exactly one has it. Main thread; held for the daemon's life.
//
// Beside the socket lies a lock file, SOCKET.lock. Whoever holds its flock may
// remove a socket that a dead daemon left and bind its own. A socket that came
// from systemd needs none of this.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "daemon/descriptor_store.h"
#include "daemon/options.h"

namespace shp {

class Listener {
 public:
  // EALREADY: another daemon has the socket.
  // `inherited`: an earlier shpd's of this service, or systemd's.
  [[nodiscard]] static Result<Listener> open(const Options& options,
                                             std::vector<NamedFd> inherited);

  // So that clients may go on connecting while nobody runs.
  void keep_in(DescriptorStore& store);

  // Takes the socket's name away, when it is ours. False, and the name is there
  // again, when a client had connected before that: it must be served.
  [[nodiscard]] bool leave();

  // Stops listening, whoever waits, and lets the next daemon have the lock.
  void close();

  const std::vector<UniqueFd>& sockets() const { return sockets_; }
  const std::string& path() const { return path_; }

 private:
  Status bind_own(const Options& options);
  Status bind_socket();
  void take(NamedFd one);
  bool somebody_waits() const;

  std::vector<UniqueFd> sockets_;
  UniqueFd lock_;
  std::string path_;
  mode_t mode_ = 0600;
  DescriptorStore* store_ = nullptr;
  bool inherited_ = false;
};

}  // namespace shp
