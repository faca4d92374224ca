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

namespace shp {
namespace {

constexpr const char* kLockName = "lock";
constexpr const char* kSocketName = "listen";
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

// Sockets of our own making and their lock by the names that keep_in() gives
// them; any other is systemd's.
void Listener::take(NamedFd one) {
  if (one.name == kLockName) {
    lock_ = std::move(one.fd);
    return;
  }
  const int fd = one.fd.get();
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  sockets_.push_back(std::move(one.fd));
}

void Listener::keep_in(DescriptorStore& store) {
  if (!lock_ || store_ != nullptr) {
    return;  // systemd's own: it has them
  }
  store_ = &store;
  if (inherited_) {
    store.know(kSocketName, sockets_.back().get());
    store.know(kLockName, lock_.get());
    return;
  }
  // The lock last: with it alone, the next shpd could have no socket.
  store.keep(kSocketName, sockets_.back().get());
  store.keep(kLockName, lock_.get());
}

Result<Listener> Listener::open(const Options& options,
                                std::vector<NamedFd> inherited) {
  Listener listener;
  for (NamedFd& one : inherited) {
    listener.take(std::move(one));
  }
  listener.inherited_ = !listener.sockets_.empty();
  if (listener.inherited_) {
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
  if (store_ != nullptr) {
    store_->drop(kSocketName);
    store_->keep(kSocketName, sockets_.back().get());
  }
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
