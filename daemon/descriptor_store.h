// DescriptorStore: the descriptors that must outlive this process, by name: the
// listening socket, and for each session its arena, directory, file and the
// like (session_keep.h). The supervisor holds its own copies (FDSTORE=1) and
// hands them to the next shpd.
//
// What is kept stays the caller's, and open until it is dropped. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "daemon/supervisor.h"

namespace shp {

class DescriptorStore {
 public:
  explicit DescriptorStore(const Supervisor& supervisor)
      : supervisor_(supervisor) {}

  // `name`: no ':' and no control characters, one of a kind.
  void keep(const std::string& name, int fd);
  // The same for one that the supervisor has already.
  void know(const std::string& name, int fd);
  void drop(const std::string& name);

  [[nodiscard]] std::vector<std::pair<std::string, int>> entries() const;

 private:
  const Supervisor& supervisor_;
  mutable std::mutex mutex_;
  std::map<std::string, int> entries_;
};

}  // namespace shp
