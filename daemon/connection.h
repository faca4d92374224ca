// Connection: a client that has connected and has one request to make. Main
// thread. It is dropped when the request does not come in time, or its answer
// is not taken.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "daemon/peer.h"

namespace shp {

struct Connection {
  static constexpr int64_t kPatienceNs = 5'000'000'000;

  uint64_t id = 0;
  UniqueFd fd;
  Peer peer;
  int64_t deadline_ns = 0;
  std::deque<std::string> answers;  // packets that are still to go out
  bool done = false;

  // Sends what the socket takes now. False: the peer is gone.
  [[nodiscard]] bool send_answers();
};

}  // namespace shp
