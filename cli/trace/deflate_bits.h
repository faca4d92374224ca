// How DeflateDecoder takes bits from its input, inline for the two sources that
// make it up: deflate_decoder.cpp and deflate_header.cpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "cli/trace/deflate_decoder.h"

namespace shp {

inline uint64_t load64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

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
