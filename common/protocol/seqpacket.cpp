#include "common/protocol/seqpacket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "common/base/clock.h"

namespace shp {
namespace {

class Deadline {
 public:
  explicit Deadline(int timeout_ms)
      : end_ns_(monotonic_ns() + int64_t{timeout_ms} * 1'000'000) {}

  int left_ms() const {
    const int64_t left = (end_ns_ - monotonic_ns() + 999'999) / 1'000'000;
    return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
  }

 private:
  int64_t end_ns_;
};

// An address for `path`, and the directory descriptor that it may speak of.
struct Address {
  sockaddr_un name;
  socklen_t bytes;
  UniqueFd directory;
};

// sun_path holds 107 bytes; longer paths (deep XDG_RUNTIME_DIR, test trees) are
// named by an O_PATH descriptor of their directory.
Result<std::string> shorten(const std::string& path, UniqueFd* directory) {
  if (path.size() < sizeof(sockaddr_un::sun_path)) {
    return path;
  }
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return errno_error(path, ENAMETOOLONG);
  }
  directory->reset(open(path.substr(0, slash + 1).c_str(), O_PATH | O_CLOEXEC));
  if (!directory->valid()) {
    return errno_error(path, errno);
  }
  std::string by_fd =
      "/proc/self/fd/" + std::to_string(directory->get()) + path.substr(slash);
  if (by_fd.size() >= sizeof(sockaddr_un::sun_path)) {
    return errno_error(path, ENAMETOOLONG);
  }
  return by_fd;
}

Result<Address> address_of(const std::string& path) {
  Address address{};
  Result<std::string> name = shorten(path, &address.directory);
  if (!name) {
    return tl::unexpected(name.error());
  }
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path, name->data(), name->size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                         name->size() + 1);
  return address;
}

Result<UniqueFd> new_socket() {
  UniqueFd fd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return errno_error("socket", errno);
  }
  return fd;
}

Status wait_for(int socket, short events, const Deadline& deadline) {
  for (;;) {
    pollfd entry{socket, events, 0};
    const int left = deadline.left_ms();
    const int ready = poll(&entry, 1, left);
    if (ready > 0) {
      return {};
    }
    if (ready == 0 && left == 0) {
      return errno_error("no answer in time", ETIMEDOUT);
    }
    if (ready < 0 && errno != EINTR) {
      return errno_error("poll", errno);
    }
  }
}

// Moves the descriptors of one control message out; those past the array's end
// are closed, and make the message too long.
bool take_fds(const cmsghdr* control, ReceivedMessage* message) {
  const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  const unsigned char* data = CMSG_DATA(control);
  bool all_fit = true;
  for (size_t i = 0; i < count; ++i) {
    int fd = -1;
    std::memcpy(&fd, data + i * sizeof(int), sizeof(int));
    UniqueFd owned(fd);
    if (message->fd_count < kMaxMessageFds) {
      message->fds[static_cast<size_t>(message->fd_count++)] = std::move(owned);
    } else {
      all_fit = false;
    }
  }
  return all_fit;
}

bool take_all_fds(msghdr* header, ReceivedMessage* message) {
  bool all_fit = true;
  for (cmsghdr* control = CMSG_FIRSTHDR(header); control != nullptr;
       control = CMSG_NXTHDR(header, control)) {
    if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
      all_fit = take_fds(control, message) && all_fit;
    }
  }
  return all_fit;
}

// Room for credentials and a security label, which the kernel may add when the
// owner of the socket asked for them, besides the descriptors.
constexpr size_t kControlBytes = CMSG_SPACE(sizeof(int) * kMaxMessageFds) + 512;

ssize_t receive_once(int socket,
                     ReceivedMessage* message,
                     int* flags,
                     bool* fds_fit) {
  alignas(cmsghdr) char control[kControlBytes];
  message->bytes.resize(kMaxMessageBytes);
  iovec part{message->bytes.data(), message->bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got >= 0) {
    *fds_fit = take_all_fds(&header, message);
    *flags = header.msg_flags;
  }
  return got;
}

}  // namespace

Result<UniqueFd> connect_seqpacket(const std::string& path, int timeout_ms) {
  const Deadline deadline(timeout_ms);
  Result<Address> address = address_of(path);
  if (!address) {
    return tl::unexpected(address.error());
  }
  Result<UniqueFd> fd = new_socket();
  if (!fd) {
    return fd;
  }
  const auto* name = reinterpret_cast<const sockaddr*>(&address->name);
  while (connect(fd->get(), name, address->bytes) != 0) {
    // EAGAIN here means a full backlog (unix(7)); there is nothing to poll for.
    if (errno != EAGAIN && errno != EINTR) {
      return errno_error(path, errno);
    }
    if (deadline.left_ms() == 0) {
      return errno_error(path, ETIMEDOUT);
    }
    poll(nullptr, 0, 1);
  }
  return fd;
}

Result<UniqueFd> listen_seqpacket(const std::string& path,
                                  mode_t mode,
                                  int backlog) {
  Result<Address> address = address_of(path);
  if (!address) {
    return tl::unexpected(address.error());
  }
  Result<UniqueFd> fd = new_socket();
  if (!fd) {
    return fd;
  }
  // The mode of the inode to come: no moment at which others could connect.
  fchmod(fd->get(), mode);
  const auto* name = reinterpret_cast<const sockaddr*>(&address->name);
  if (bind(fd->get(), name, address->bytes) != 0) {
    return errno_error(path, errno);
  }
  if (chmod(path.c_str(), mode) != 0 || listen(fd->get(), backlog) != 0) {
    return errno_error(path, errno);
  }
  return fd;
}

Result<UniqueFd> accept_seqpacket(int listener) {
  UniqueFd fd(
      accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    return errno_error("accept", errno);
  }
  return fd;
}

Status send_message(int socket,
                    std::string_view bytes,
                    const int* fds,
                    int fd_count,
                    int timeout_ms) {
  const Deadline deadline(timeout_ms);
  if (fd_count > kMaxMessageFds || bytes.size() > kMaxMessageBytes) {
    return errno_error("message", EMSGSIZE);
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMessageFds)] = {};
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd_count > 0) {
    const size_t fd_bytes = sizeof(int) * static_cast<size_t>(fd_count);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fd_bytes);
    cmsghdr* first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(fd_bytes);
    std::memcpy(CMSG_DATA(first), fds, fd_bytes);
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      return errno_error("send", errno);
    }
    if (Status ready = wait_for(socket, POLLOUT, deadline); !ready) {
      return ready;
    }
  }
  return {};
}

Result<ReceivedMessage> receive_message(int socket, int timeout_ms) {
  const Deadline deadline(timeout_ms);
  ReceivedMessage message;
  int flags = 0;
  bool fds_fit = true;
  ssize_t got = -1;
  while ((got = receive_once(socket, &message, &flags, &fds_fit)) < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      return errno_error("receive", errno);
    }
    if (Status ready = wait_for(socket, POLLIN, deadline); !ready) {
      return tl::unexpected(ready.error());
    }
  }
  if (got == 0) {
    return errno_error("peer hung up", ECONNRESET);
  }
  if ((flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || !fds_fit) {
    return errno_error("message was cut", EMSGSIZE);
  }
  message.bytes.resize(static_cast<size_t>(got));
  return message;
}

}  // namespace shp
