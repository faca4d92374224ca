#include "daemon/peer.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <string>

#include "daemon/process.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace shp {
namespace {

constexpr size_t kMaxGroups = 65536;  // the kernel's NGROUPS_MAX

Result<std::vector<gid_t>> groups_of(int connection) {
  std::vector<gid_t> groups(64);
  for (;;) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (getsockopt(
            connection, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) ==
        0) {
      groups.resize(bytes / sizeof(gid_t));
      return groups;
    }
    if (errno != ERANGE || groups.size() > kMaxGroups) {
      return errno_error("SO_PEERGROUPS", errno);
    }
    groups.resize(bytes / sizeof(gid_t));
  }
}

UniqueFd pidfd_of(int connection, pid_t pid) {
  int fd = -1;
  socklen_t bytes = sizeof(fd);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) == 0) {
    return UniqueFd(fd);
  }
  if (pid <= 0) {
    return UniqueFd();
  }
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// Value of "Key:\t…" in /proc/PID/status, empty when it is not there.
std::string status_value(const std::string& status, const char* key) {
  const std::string start = std::string("\n") + key + ":\t";
  const size_t at = status.find(start);
  if (at == std::string::npos) {
    return {};
  }
  const size_t begin = at + start.size();
  return status.substr(begin, status.find('\n', begin) - begin);
}

// Raw system calls: glibc's wrappers would change every thread of the daemon.
Status set_groups(const std::vector<gid_t>& groups) {
  if (syscall(SYS_setgroups, groups.size(), groups.data()) != 0) {
    return errno_error("setgroups", errno);
  }
  return {};
}

// setfsuid and setfsgid report no failure; asking with -1 tells the value.
Status set_fs_ids(uid_t uid, gid_t gid) {
  syscall(SYS_setfsgid, gid);
  syscall(SYS_setfsuid, uid);
  if (syscall(SYS_setfsgid, -1) != static_cast<long>(gid) ||
      syscall(SYS_setfsuid, -1) != static_cast<long>(uid)) {
    return errno_error("setfsuid", EPERM);
  }
  return {};
}

Status keep_capabilities(uint64_t kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) {
    return errno_error("capget", errno);
  }
  for (int i = 0; i < 2; ++i) {
    const auto half = static_cast<uint32_t>(kept >> (32 * i));
    data[i].effective &= half;
    data[i].permitted &= half;
    data[i].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, data) != 0) {
    return errno_error("capset", errno);
  }
  return {};
}

}  // namespace

Result<Peer> peer_of(int connection) {
  ucred credentials{};
  socklen_t bytes = sizeof(credentials);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) !=
      0) {
    return errno_error("SO_PEERCRED", errno);
  }
  Peer peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.gid = credentials.gid;
  Result<std::vector<gid_t>> groups = groups_of(connection);
  if (!groups) {
    return tl::unexpected(groups.error());
  }
  peer.groups = std::move(*groups);
  peer.pidfd = pidfd_of(connection, peer.pid);
  return peer;
}

PeerRights rights_of(const Peer& peer) {
  PeerRights rights;
  if (peer.pid <= 0 || !peer.pidfd) {
    return rights;
  }
  const std::string status =
      read_proc_file(peer.pid, "status", 64U << 10).value_or("");
  // Only now is it sure that the number still named the peer while it was read.
  if (has_exited(peer.pidfd.get())) {
    return rights;
  }
  rights.capabilities =
      std::strtoull(status_value(status, "CapEff").c_str(), nullptr, 16);
  const std::string umask_text = status_value(status, "Umask");
  if (!umask_text.empty()) {
    rights.umask =
        static_cast<mode_t>(std::strtoul(umask_text.c_str(), nullptr, 8)) &
        0777;
  }
  return rights;
}

Status become_client(const Peer& peer, const PeerRights& rights) {
  if (geteuid() != 0) {
    return {};
  }
  if (Status done = set_groups(peer.groups); !done) {
    return done;
  }
  if (Status done = set_fs_ids(peer.uid, peer.gid); !done) {
    return done;
  }
  return keep_capabilities(peer.uid == 0 ? rights.capabilities : 0);
}

}  // namespace shp
