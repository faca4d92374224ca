// A shpd of this run's own, where none answers: started before the program,
// ended when everything is published. It has a session of its own, so that no
// signal of a terminal reaches it, and it ends by itself when idle, so that it
// may outlive us where grandchildren still record.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp {

class PrivateDaemon {
 public:
  // Returns when it listens. `program` is shpd's path.
  [[nodiscard]] Status start(const std::string& program);

  // Asks it to publish and end, and waits; false when it did not in time.
  bool end(int timeout_ms);

  // Its last line on stderr, "" when it said nothing.
  [[nodiscard]] std::string last_words() const;

  bool running();
  const std::string& socket() const { return socket_; }

 private:
  [[nodiscard]] Status choose_socket();
  [[nodiscard]] Status wait_until_it_listens();

  pid_t pid_ = -1;
  std::string socket_;
  std::string made_folder_;  // to be removed, "" when none was made
  UniqueFd log_;
};

}  // namespace shp
