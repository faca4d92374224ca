// How DeflateDecoder takes bits from its input, inline for the two sources that
// make it up: deflate_decoder.cpp and deflate_header.cpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "cli/trace/deflate_decoder.h"
#include "cli/trace/huffman_table.h"

namespace shp {

inline uint64_t load64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

// Bits of an input, by value: for loops that want them in registers.
struct BitCursor {
  const uint8_t* next;
  uint64_t bits;
  unsigned count;

  // As DeflateDecoder::refill().
  void refill() {
    bits |= load64(next) << count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  uint64_t peek(unsigned wanted) const {
    return bits & ((uint64_t{1} << wanted) - 1);
  }
  void drop(unsigned used) {
    bits >>= used;
    count -= used;
  }
  unsigned take(unsigned wanted) {
    const auto value = static_cast<unsigned>(peek(wanted));
    drop(wanted);
    return value;
  }
  // The entry of a second table where `entry` says so.
  uint32_t resolve(const uint32_t* table, uint32_t entry, unsigned index_bits) {
    if ((entry & kEntrySecond) == 0) [[likely]] {
      return entry;
    }
    drop(index_bits);
    return table[entry_value(entry) + peek(entry_extra(entry))];
  }
};

// Afterwards there are 56 bits, zeros and worse behind the end of the input.
inline void DeflateDecoder::refill(DeflateInput& in) {
  bits_ |= load64(in.next) << bit_count_;
  in.next += (63 - bit_count_) >> 3;
  bit_count_ |= 56;
}

inline unsigned DeflateDecoder::take_bits(unsigned count) {
  const auto value = static_cast<unsigned>(bits_ & ((1ULL << count) - 1));
  bits_ >>= count;
  bit_count_ -= count;
  return value;
}

}  // namespace shp
