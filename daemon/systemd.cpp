#include "daemon/systemd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace shp {
namespace {

constexpr int kFirstFd = 3;  // SD_LISTEN_FDS_START

bool is_for_us(const char* pid_variable) {
  const char* pid = std::getenv(pid_variable);
  return pid != nullptr && std::atoi(pid) == getpid();
}

}  // namespace

std::vector<UniqueFd> take_activation_sockets() {
  std::vector<UniqueFd> sockets;
  const char* count = std::getenv("LISTEN_FDS");
  if (count != nullptr && is_for_us("LISTEN_PID")) {
    const int last = kFirstFd + std::atoi(count);
    for (int fd = kFirstFd; fd < last && fd < kFirstFd + 16; ++fd) {
      fcntl(fd, F_SETFD, FD_CLOEXEC);
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
      sockets.emplace_back(fd);
    }
  }
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  return sockets;
}

void notify_systemd(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || std::strlen(path) >= sizeof(address.sun_path)) {
    return;
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path) + 1);
  if (address.sun_path[0] == '@') {
    address.sun_path[0] = '\0';  // an abstract socket
  }
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                            std::strlen(path));
  sendto(fd.get(),
         state.data(),
         state.size(),
         MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address),
         bytes);
}

int64_t watchdog_interval_ns() {
  const char* microseconds = std::getenv("WATCHDOG_USEC");
  const bool ours =
      std::getenv("WATCHDOG_PID") == nullptr || is_for_us("WATCHDOG_PID");
  // Half of the time that we have, as sd_watchdog_enabled(3) advises.
  return microseconds != nullptr && ours ? std::atoll(microseconds) * 1000 / 2
                                         : 0;
}

}  // namespace shp
