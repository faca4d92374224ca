#include "daemon/descriptor_store.h"

namespace shp {

// FDPOLL=0: systemd would take out what hangs up, and a client that has gone is
// just what we want to hear of. Under the lock, so that the supervisor hears of
// one name in the order that we do.
void DescriptorStore::keep(const std::string& name, int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[name] = fd;
  supervisor_.tell("FDSTORE=1\nFDPOLL=0\nFDNAME=" + name, fd);
}

void DescriptorStore::know(const std::string& name, int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[name] = fd;
}

void DescriptorStore::drop(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.erase(name) > 0) {
    supervisor_.tell("FDSTOREREMOVE=1\nFDNAME=" + name);
  }
}

std::vector<std::pair<std::string, int>> DescriptorStore::entries() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

}  // namespace shp
