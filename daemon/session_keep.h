// SessionKeep: a session's descriptors in the descriptor store, so that the
// next shpd can go on with it when this one dies. On the session's thread.
//
//   NUMBER a   arena              NUMBER p   pidfd
//   NUMBER d   directory          NUMBER l   life line, the Start connection
//   NUMBER f   the pending file   NUMBER x   the spool of deferred args
//   NUMBER s   state: who the client is and what it asked for, in a memfd that
//              nobody but shpd can reach
//
// What an arena or a file is, is known by its name here, never by its contents:
// those are the client's to write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "daemon/descriptor_store.h"
#include "daemon/session.h"

namespace shp {

class SessionKeep {
 public:
  SessionKeep(DescriptorStore& store, SessionRequest& request);

  // Stores what the request brought. Before its file is made.
  [[nodiscard]] Status begin();
  void keep_file(int fd);
  void keep_spool(int fd);

  // The StartRequest has its answer.
  void note_answered();
  // It drains: what it died of before is not the session's doing.
  void note_going_well();
  // What its StopRequest is answered, should it die between publishing and
  // that.
  void note_result(const Reply& reply);
  // All out of the store again.
  void end();

 private:
  void put(char role, int fd);

  DescriptorStore& store_;
  SessionRequest& request_;
  std::string kept_;  // roles that are in the store
};

// What an earlier shpd left, ready to be launched; the others are dropped, with
// a line in the log. `others` gets what is no session's.
[[nodiscard]] std::vector<SessionRequest> kept_sessions(
    std::vector<NamedFd> inherited,
    DescriptorStore& store,
    std::vector<NamedFd>* others);

}  // namespace shp
