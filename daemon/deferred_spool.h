// DeferredSpool: spans whose args come later (kHasDeferred), kept on disk until
// then, so that a million of them cost the daemon no memory. One a session, on
// its thread, made at its first such span.
//
// A nameless file in the session's directory (the client's own disk and quota),
// one fixed entry a key: keys count up from 1, so the file is an array. A few
// pages of it are held back in memory, since spans and their args come in runs.
//
// It outlives its daemon where the descriptor does. Each entry says which
// commit of the session put it there and which took it out, so that whoever
// goes on from a commit finds it as it was then.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp {

class DeferredSpool {
 public:
  struct Entry {
    int64_t start_ns;
    int64_t duration_ns;
    uint32_t name;
    uint32_t tid;
    uint32_t put_in;    // commit that has it first; 0: no entry
    uint32_t taken_in;  // commit that has it no more; 0: its args have not come
  };
  static_assert(sizeof(Entry) == 32);
  // Bounds the size of the (sparse) file: 2^26 entries are 2 GiB.
  static constexpr uint64_t kMaxKey = uint64_t{1} << 26;

  // `directory` stays the caller's.
  explicit DeferredSpool(int directory) : directory_(directory) {}

  // Goes on with another daemon's file as of commit `sequence`.
  void take_up(UniqueFd file, uint32_t sequence);

  // All that was put and taken since the last call is part of commit
  // `sequence` + 1 from here on. Call it after each commit.
  void committed(uint32_t sequence) { next_commit_ = sequence + 1; }
  // Everything into the file; before a commit. False: there is no room now.
  [[nodiscard]] bool flush();

  // The file, -1 while there is none.
  int fd() const { return fd_.get(); }

  // False when the key is out of range or taken, or there is no room.
  [[nodiscard]] bool put(uint64_t key, Entry entry);

  // Takes the entry of `key` out; false when none waits under it.
  [[nodiscard]] bool take(uint64_t key, Entry* out);

  uint64_t waiting() const { return waiting_; }

  // Hands every entry that still waits to `use`, in the order of keys.
  template <typename Use>
  void take_rest(Use&& use) {
    for (uint64_t key = 1; waiting_ > 0 && key <= last_key_; ++key) {
      Entry entry;
      if (take(key, &entry)) {
        use(entry);
      }
    }
  }

 private:
  static constexpr size_t kPageEntries = 128;
  static constexpr size_t kPages = 16;
  struct Page {
    uint64_t number = 0;
    bool loaded = false;
    bool dirty = false;
    std::array<Entry, kPageEntries> entries;
  };

  bool make_file();
  Page* page_of(uint64_t key);
  bool write_back(Page* page);
  void take_up_page(uint64_t number, uint32_t sequence);
  bool load(Page* page, uint64_t number);

  int directory_;
  UniqueFd fd_;
  bool failed_ = false;
  uint64_t waiting_ = 0;
  uint64_t last_key_ = 0;
  uint32_t next_commit_ = 1;
  std::array<Page, kPages> pages_;
};

}  // namespace shp
