#include "daemon/deferred_spool.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace shp {

bool DeferredSpool::make_file() {
  if (fd_ || failed_) {
    return !failed_;
  }
  fd_.reset(openat(directory_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd_) {
    // File systems without O_TMPFILE (FAT, overlay of old, NFS): a name that
    // is gone again at once.
    const std::string name = ".shp-spool-" + std::to_string(getpid()) + '-' +
                             std::to_string(syscall(SYS_gettid));
    fd_.reset(openat(
        directory_, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd_) {
      unlinkat(directory_, name.c_str(), 0);
    }
  }
  failed_ = !fd_;
  return !failed_;
}

bool DeferredSpool::write_back(Page* page) {
  if (!page->dirty) {
    return true;
  }
  const auto offset = static_cast<off_t>(page->number * sizeof(page->entries));
  if (pwrite(fd_.get(), page->entries.data(), sizeof(page->entries), offset) !=
      static_cast<ssize_t>(sizeof(page->entries))) {
    return false;
  }
  page->dirty = false;
  return true;
}

bool DeferredSpool::load(Page* page, uint64_t number) {
  const auto offset = static_cast<off_t>(number * sizeof(page->entries));
  page->entries.fill(Entry{});
  page->loaded = false;
  if (pread(fd_.get(), page->entries.data(), sizeof(page->entries), offset) <
      0) {
    return false;
  }
  page->number = number;
  page->loaded = true;
  return true;
}

DeferredSpool::Page* DeferredSpool::page_of(uint64_t key) {
  const uint64_t number = key / kPageEntries;
  Page* page = &pages_[number % kPages];
  if (page->loaded && page->number == number) {
    return page;
  }
  if ((page->loaded && !write_back(page)) || !load(page, number)) {
    return nullptr;
  }
  return page;
}

bool DeferredSpool::put(uint64_t key, Entry entry) {
  if (key == 0 || key > kMaxKey || !make_file()) {
    return false;
  }
  Page* page = page_of(key);
  if (page == nullptr || page->entries[key % kPageEntries].waiting != 0) {
    return false;
  }
  entry.waiting = 1;
  page->entries[key % kPageEntries] = entry;
  page->dirty = true;
  ++waiting_;
  last_key_ = std::max(last_key_, key);
  return true;
}

bool DeferredSpool::take(uint64_t key, Entry* out) {
  if (key == 0 || key > last_key_ || !fd_) {
    return false;
  }
  Page* page = page_of(key);
  if (page == nullptr || page->entries[key % kPageEntries].waiting == 0) {
    return false;
  }
  *out = page->entries[key % kPageEntries];
  page->entries[key % kPageEntries].waiting = 0;
  page->dirty = true;
  --waiting_;
  return true;
}

}  // namespace shp
