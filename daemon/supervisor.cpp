#include "daemon/supervisor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace shp {
namespace {

constexpr int kFirstFd = 3;  // SD_LISTEN_FDS_START
constexpr const char* kGivenByUs = "SHP_KEPT_FDS";

bool is_for_us(const char* pid_variable) {
  const char* pid = std::getenv(pid_variable);
  return pid != nullptr && std::atoi(pid) == getpid();
}

void set_cloexec(int fd, bool on) {
  fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0);
}

// Up to the next `end`, which is taken away with it.
std::string_view next_piece(std::string_view* text, char end) {
  const size_t at = std::min(text->find(end), text->size());
  const std::string_view piece = text->substr(0, at);
  text->remove_prefix(std::min(at + 1, text->size()));
  return piece;
}

void take_from_systemd(std::vector<NamedFd>* out) {
  const char* count = std::getenv("LISTEN_FDS");
  const char* names = std::getenv("LISTEN_FDNAMES");
  std::string_view rest = names != nullptr ? names : "";
  if (count != nullptr && is_for_us("LISTEN_PID")) {
    const int last = kFirstFd + std::atoi(count);
    for (int fd = kFirstFd; fd < last; ++fd) {
      const std::string name(next_piece(&rest, ':'));
      set_cloexec(fd, true);
      out->push_back({name, UniqueFd(fd)});
    }
  }
}

void take_from_ourselves(std::vector<NamedFd>* out) {
  const char* number = std::getenv(kGivenByUs);
  if (number == nullptr) {
    return;
  }
  const UniqueFd list(std::atoi(number));
  std::string text;
  char piece[4096];
  for (ssize_t got = 0; (got = pread(list.get(),
                                     piece,
                                     sizeof(piece),
                                     static_cast<off_t>(text.size()))) > 0;) {
    text.append(piece, static_cast<size_t>(got));
  }
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = next_piece(&rest, '\n');
    const std::string fd(next_piece(&line, ' '));
    set_cloexec(std::atoi(fd.c_str()), true);
    out->push_back({std::string(line), UniqueFd(std::atoi(fd.c_str()))});
  }
}

size_t address_of_systemd(sockaddr_un* address) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  const size_t bytes = path == nullptr ? 0 : std::strlen(path);
  if (bytes == 0 || bytes >= sizeof(address->sun_path)) {
    return 0;
  }
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, path, bytes);  // address is zeroed
  if (address->sun_path[0] == '@') {
    address->sun_path[0] = '\0';  // an abstract socket
  }
  return offsetof(sockaddr_un, sun_path) + bytes;
}

// Nobody's slowness may hold a session up for long.
void limit_wait(int socket) {
  const timeval limit{5, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

void send_state(int socket,
                const sockaddr_un* address,
                size_t address_bytes,
                std::string_view state,
                int fd) {
  iovec part{const_cast<char*>(state.data()), state.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (address_bytes > 0) {
    message.msg_name = const_cast<sockaddr_un*>(address);
    message.msg_namelen = static_cast<socklen_t>(address_bytes);
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &fd, sizeof(fd));
  }
  while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace

bool under_systemd() {
  return std::getenv("NOTIFY_SOCKET") != nullptr;
}

Supervisor::Supervisor(UniqueFd keeper) : keeper_(std::move(keeper)) {
  if (keeper_) {
    limit_wait(keeper_.get());
  }
}

std::vector<NamedFd> take_inherited() {
  std::vector<NamedFd> out;
  take_from_systemd(&out);
  take_from_ourselves(&out);
  for (const char* name :
       {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", kGivenByUs}) {
    unsetenv(name);
  }
  return out;
}

void Supervisor::tell(std::string_view state, int fd) const {
  if (keeper_) {
    return send_state(keeper_.get(), nullptr, 0, state, fd);
  }
  sockaddr_un address{};
  const size_t bytes = address_of_systemd(&address);
  if (bytes > 0) {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    limit_wait(socket.get());
    send_state(socket.get(), &address, bytes, state, fd);
  }
}

void exec_with(const char* program,
               const std::vector<std::string>& arguments,
               const std::vector<std::pair<std::string, int>>& entries) {
  // A list in a file: the environment has no room for thousands.
  UniqueFd list(memfd_create("shpd-kept", 0));
  std::string text;
  for (const auto& [name, fd] : entries) {
    text += std::to_string(fd) + ' ' + name + '\n';
  }
  if (!list || write(list.get(), text.data(), text.size()) !=
                   static_cast<ssize_t>(text.size())) {
    return;
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  for (const auto& [name, fd] : entries) {
    set_cloexec(fd, false);
  }
  setenv(kGivenByUs, std::to_string(list.get()).c_str(), 1);
  execv(program, argv.data());
  unsetenv(kGivenByUs);
  for (const auto& [name, fd] : entries) {
    set_cloexec(fd, true);
  }
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
