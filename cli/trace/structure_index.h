// Where quotes and brackets stand in a piece of a trace, as bits: one pass over
// the bytes, 64 at a time, so that events are taken apart without looking at
// each byte again.
//
// For scan.*; one index belongs to one thread. Rules are loose_json.h's: a
// backslash counts inside strings only, and brackets outside of them only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shp {

// Of 64 bytes; the lowest bit is the first byte.
struct StructureBits {
  uint64_t quotes = 0;  // that begin or end a string
  uint64_t opens = 0;   // "{" and "["
  uint64_t closes = 0;  // "}" and "]"
};

class StructureIndex {
 public:
  static constexpr size_t kBlockBytes = 64;

  // Indexes text[begin, end), at the beginning of which no string is open.
  // kBlockBytes zero bytes lie behind `end`. The text has to stay while the
  // index is used. `wide`: with instructions that not every machine has.
  void build(const char* text,
             size_t begin,
             size_t end,
             bool wide = machine_is_wide());
  static bool machine_is_wide();

  const char* text() const { return text_; }
  size_t begin() const { return begin_; }
  size_t end() const { return end_; }
  // Bits of the block that `place` is in, begin() <= place < end().
  const StructureBits& at(size_t place) const {
    return bits_[place / kBlockBytes - begin_ / kBlockBytes];
  }
  const StructureBits* blocks() const { return bits_.data(); }

 private:
  const char* text_ = nullptr;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<StructureBits> bits_;
};

}  // namespace shp
