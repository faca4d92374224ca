// Peer: who is at the other end of a connection, by the kernel's word and
// nobody else's; and the client's identity for a session's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp {

struct Peer {
  pid_t pid = 0;  // in our pid namespace; 0 when it is in none that we see
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  UniqueFd pidfd;  // empty where the kernel cannot give one
};

// Reads SO_PEERCRED, SO_PEERGROUPS and SO_PEERPIDFD (or pidfd_open) of a
// connected socket.
[[nodiscard]] Result<Peer> peer_of(int connection);

// What /proc says of the peer's rights; a lack of it means none.
struct PeerRights {
  uint64_t capabilities = 0;  // effective
  mode_t umask = 022;
};
[[nodiscard]] PeerRights rights_of(const Peer& peer);

// Gives the calling thread, and it alone, the peer's file-system identity for
// the rest of its life: groups, fsgid, fsuid, and no capability that the peer
// has not. What the thread opens, it opens as the client would. A daemon that
// is not root serves its own uid only and has nothing to change.
[[nodiscard]] Status become_client(const Peer& peer, const PeerRights& rights);

}  // namespace shp
