#include "daemon/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>

#include "common/base/clock.h"
#include "common/protocol/seqpacket.h"
#include "common/protocol/socket_path.h"
#include "daemon/systemd.h"

namespace shp {
namespace {

constexpr int64_t kLockWaitNs = 3'000'000'000;

// Removing the lock file after use would let two daemons lock two files of one
// name; it stays.
Result<UniqueFd> take_lock(const std::string& path) {
  UniqueFd lock(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) {
    return errno_error(path, errno);
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno_error(path, errno == EWOULDBLOCK ? EALREADY : errno);
  }
  return lock;
}

// Another daemon that has the lock and answers has won. One that does not
// answer is about to listen, or about to end: then it is soon clear which.
Result<UniqueFd> wait_for_lock(const std::string& socket) {
  const int64_t deadline = monotonic_ns() + kLockWaitNs;
  for (;;) {
    Result<UniqueFd> lock = take_lock(socket + ".lock");
    if (lock || lock.error().errno_value != EALREADY ||
        connect_seqpacket(socket, 1000) || monotonic_ns() > deadline) {
      return lock;
    }
    poll(nullptr, 0, 10);
  }
}

// With the lock in hand: whatever socket is there is a dead daemon's, or a
// living one's that knows no lock (another version), which answers.
Status remove_stale(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status{} : errno_error(path, errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return error(path + ": is no socket; not removed");
  }
  if (connect_seqpacket(path, 1000)) {
    return errno_error(path, EALREADY);
  }
  if (unlink(path.c_str()) != 0) {
    return errno_error(path, errno);
  }
  return {};
}

mode_t mode_of(const std::string& octal) {
  return static_cast<mode_t>(std::strtoul(octal.c_str(), nullptr, 8));
}

std::string path_of(int socket) {
  sockaddr_un address{};
  socklen_t bytes = sizeof(address) - 1;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
    return {};
  }
  return address.sun_path;
}

}  // namespace

Result<Listener> Listener::open(const Options& options) {
  Listener listener;
  listener.sockets_ = take_activation_sockets();
  if (!listener.sockets_.empty()) {
    listener.path_ = path_of(listener.sockets_.front().get());
    return listener;
  }
  if (Status bound = listener.bind_own(options); !bound) {
    return tl::unexpected(bound.error());
  }
  return listener;
}

Status Listener::bind_own(const Options& options) {
  const SocketEnvironment environment = current_socket_environment();
  if (options.socket.empty()) {
    if (Status made = prepare_socket_directory(environment); !made) {
      return made;
    }
  }
  path_ =
      options.socket.empty() ? own_socket_path(environment) : options.socket;
  const bool system_wide = geteuid() == 0 && path_ == kSystemSocketPath;
  mode_ = !options.socket_mode.empty() ? mode_of(options.socket_mode)
          : system_wide                ? 0666
                                       : 0600;
  Result<UniqueFd> lock = wait_for_lock(path_);
  if (!lock) {
    return tl::unexpected(lock.error());
  }
  lock_ = std::move(*lock);
  if (Status removed = remove_stale(path_); !removed) {
    return removed;
  }
  return bind_socket();
}

Status Listener::bind_socket() {
  Result<UniqueFd> socket = listen_seqpacket(path_, mode_);
  if (!socket) {
    return tl::unexpected(socket.error());
  }
  sockets_.push_back(std::move(*socket));
  return {};
}

bool Listener::somebody_waits() const {
  for (const UniqueFd& socket : sockets_) {
    pollfd entry{socket.get(), POLLIN, 0};
    if (poll(&entry, 1, 0) > 0) {
      return true;
    }
  }
  return false;
}

bool Listener::leave() {
  if (!lock_) {
    return !somebody_waits();
  }
  unlink(path_.c_str());
  if (!somebody_waits()) {
    return true;
  }
  // Its stop will come over a new connection, which must find us.
  return !bind_socket();
}

void Listener::close() {
  if (lock_) {
    unlink(path_.c_str());
  }
  sockets_.clear();
  lock_.reset();
}

}  // namespace shp
