// NameReader: names of an arena as text that is ready for a span line. One a
// session, on its thread.
//
// A name's bytes are copied once, checked there, and kept as text by id; a
// client that changes them later changes nothing that was copied. The cache is
// bounded (a million distinct names must not become the daemon's memory): when
// it is full it is emptied, and names are read again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/shm/arena_view.h"

namespace shp {

class NameReader {
 public:
  static constexpr size_t kEntries = 4096;
  static constexpr size_t kTextBytes = 1U << 20;

  explicit NameReader(const ArenaView& arena);

  // `"step","start_ns":` of name `id`, valid until the next call; empty when
  // the arena has no such name.
  std::string_view text(uint32_t id) {
    const Entry& entry = entries_[id % kEntries];
    return entry.id == id
               ? std::string_view(text_.data() + entry.offset, entry.bytes)
               : load(id);
  }

 private:
  struct Entry {
    uint32_t id = kNoName;
    uint32_t offset = 0;
    uint32_t bytes = 0;
  };
  std::string_view load(uint32_t id);
  void forget_all();

  const ArenaView& arena_;
  std::vector<Entry> entries_;
  std::string text_;
  std::string raw_;
  std::string long_;  // a text that is too long to keep
};

}  // namespace shp
