// Decoding tables of deflate's Huffman codes: one look-up for codes that are
// not longer than the table's index, a second one for the others.
//
// Pure. An entry (uint32):
//   value << 16 | flags | extra bits << 8 | bits of the code
// value is a literal, a length's or distance's base, or where a second table
// begins; its index bits stand for `extra bits` then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shp {

inline constexpr uint32_t kEntryLiteral = 0x8000'0000;
inline constexpr uint32_t kEntrySecond = 0x8000;  // look into a second table
inline constexpr uint32_t kEntryEnd = 0x4000;     // end of block
inline constexpr uint32_t kEntryBad = 0x2000;     // no such code
inline constexpr uint32_t kEntrySpecial = 0xe000;

inline uint32_t entry_bits(uint32_t entry) {
  return entry & 0x1f;
}
inline uint32_t entry_extra(uint32_t entry) {
  return entry >> 8 & 0x1f;
}
inline uint32_t entry_value(uint32_t entry) {
  return entry >> 16 & 0x7fff;
}

// `payload[i]` is symbol i's entry without the bits of its code, which come
// from `lengths[i]` (0: no code, at most 15). False when the lengths are no
// prefix code; like zlib, one single code of one bit is taken.
bool build_huffman(const uint8_t* lengths,
                   const uint32_t* payload,
                   size_t count,
                   unsigned index_bits,
                   std::vector<uint32_t>& table);

}  // namespace shp
