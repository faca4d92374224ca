#include "daemon/deferred_spool.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace shp {
namespace {

bool is_waiting(const DeferredSpool::Entry& entry) {
  return entry.put_in != 0 && entry.taken_in == 0;
}

}  // namespace

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

bool DeferredSpool::flush() {
  bool all = true;
  for (Page& page : pages_) {
    all = (!page.loaded || write_back(&page)) && all;
  }
  return all;
}

void DeferredSpool::take_up(UniqueFd file, uint32_t sequence) {
  fd_ = std::move(file);
  next_commit_ = sequence + 1;
  constexpr auto kBytes = static_cast<off_t>(sizeof(Page::entries));
  for (off_t at = 0; (at = lseek(fd_.get(), at, SEEK_DATA)) >= 0;) {
    const auto number = static_cast<uint64_t>(at / kBytes);
    if (number > kMaxKey / kPageEntries) {
      break;
    }
    take_up_page(number, sequence);
    at = static_cast<off_t>(number + 1) * kBytes;
  }
}

void DeferredSpool::take_up_page(uint64_t number, uint32_t sequence) {
  Page* page = page_of(number * kPageEntries);
  if (page == nullptr) {
    return;
  }
  for (size_t i = 0; i < kPageEntries; ++i) {
    Entry& entry = page->entries[i];
    if (entry.put_in > sequence) {
      entry = Entry{};
    } else if (entry.taken_in > sequence) {
      entry.taken_in = 0;
    }
    if (is_waiting(entry)) {
      ++waiting_;
      last_key_ = std::max(last_key_, number * kPageEntries + i);
    }
  }
  page->dirty = true;
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
  if (page == nullptr || is_waiting(page->entries[key % kPageEntries])) {
    return false;
  }
  entry.put_in = next_commit_;
  entry.taken_in = 0;
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
  if (page == nullptr || !is_waiting(page->entries[key % kPageEntries])) {
    return false;
  }
  *out = page->entries[key % kPageEntries];
  page->entries[key % kPageEntries].taken_in = next_commit_;
  page->dirty = true;
  --waiting_;
  return true;
}

}  // namespace shp
