// The headers of deflate's blocks: which code the block is written in.
#include <algorithm>
#include <array>
#include <cstring>

#include "cli/trace/deflate_bits.h"
#include "cli/trace/deflate_decoder.h"
#include "cli/trace/huffman_table.h"

namespace shp {
namespace {

constexpr size_t kLitSymbols = 288;
constexpr size_t kDistSymbols = 32;
// RFC 1951, section 3.2.5.
std::array<uint32_t, kLitSymbols> lit_payload() {
  std::array<uint32_t, kLitSymbols> out{};
  for (uint32_t i = 0; i < 256; ++i) {
    out[i] = kEntryLiteral | i << 16;
  }
  out[256] = kEntryEnd;
  uint32_t base = 3;
  for (uint32_t i = 257; i < 285; ++i) {
    const uint32_t extra = i < 265 ? 0 : (i - 261) / 4;
    out[i] = base << 16 | extra << 8;
    base += 1U << extra;
  }
  out[285] = 258U << 16;
  out[286] = out[287] = kEntryBad;
  return out;
}

std::array<uint32_t, kDistSymbols> dist_payload() {
  std::array<uint32_t, kDistSymbols> out{};
  uint32_t base = 1;
  for (uint32_t i = 0; i < 30; ++i) {
    const uint32_t extra = i < 4 ? 0 : i / 2 - 1;
    out[i] = base << 16 | extra << 8;
    base += 1U << extra;
  }
  out[30] = out[31] = kEntryBad;
  return out;
}

std::array<uint32_t, 19> length_payload() {
  std::array<uint32_t, 19> out{};
  for (uint32_t i = 0; i < 19; ++i) {
    out[i] = i << 16;
  }
  return out;
}

const auto kLitPayload = lit_payload();
const auto kDistPayload = dist_payload();
const auto kLengthPayload = length_payload();

}  // namespace

bool DeflateDecoder::read_header(DeflateInput& in) {
  refill(in);
  final_ = take_bits(1) != 0;
  bool good = false;
  switch (take_bits(2)) {
    case 0:
      state_ = State::kStored;
      good = read_stored(in);
      break;
    case 1:
      state_ = State::kCodes;
      use_fixed();
      good = true;
      break;
    case 2:
      state_ = State::kCodes;
      good = read_dynamic(in);
      break;
    default:
      break;
  }
  return good && !overran(in);
}

bool DeflateDecoder::read_stored(DeflateInput& in) {
  unread(in);
  bits_ = bit_count_ = 0;
  if (in.end - in.next < 4) {
    in.next = in.end + 1;
    return false;
  }
  const unsigned length = in.next[0] | in.next[1] << 8;
  const unsigned inverse = in.next[2] | in.next[3] << 8;
  in.next += 4;
  stored_left_ = length;
  return (length ^ 0xffff) == inverse;
}

void DeflateDecoder::use_fixed() {
  std::array<uint8_t, kLitSymbols> lengths{};
  for (size_t i = 0; i < kLitSymbols; ++i) {
    lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  }
  std::array<uint8_t, kDistSymbols> distances{};
  distances.fill(5);
  build_huffman(
      lengths.data(), kLitPayload.data(), kLitSymbols, kLitBits, lit_table_);
  build_huffman(distances.data(),
                kDistPayload.data(),
                kDistSymbols,
                kDistBits,
                dist_table_);
}

bool DeflateDecoder::read_dynamic(DeflateInput& in) {
  static constexpr uint8_t kOrder[19] = {
      16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  refill(in);
  const size_t lit_count = 257 + take_bits(5);
  const size_t dist_count = 1 + take_bits(5);
  const size_t length_count = 4 + take_bits(4);
  if (lit_count > 286 || dist_count > 30) {
    return false;
  }
  std::array<uint8_t, 19> code_lengths{};
  for (size_t i = 0; i < length_count; ++i) {
    refill(in);
    code_lengths[kOrder[i]] = static_cast<uint8_t>(take_bits(3));
  }
  // One code alone leaves this code incomplete, which only here is wrong.
  const auto unused =
      std::count(code_lengths.begin(), code_lengths.end(), uint8_t{0});
  if (unused > 17 || !build_huffman(code_lengths.data(),
                                    kLengthPayload.data(),
                                    code_lengths.size(),
                                    7,
                                    length_table_)) {
    return false;
  }
  std::array<uint8_t, kLitSymbols + kDistSymbols> lengths{};
  if (!read_lengths(in, lengths.data(), lit_count + dist_count) ||
      lengths[256] == 0) {
    return false;
  }
  return build_huffman(lengths.data(),
                       kLitPayload.data(),
                       lit_count,
                       kLitBits,
                       lit_table_) &&
         build_huffman(lengths.data() + lit_count,
                       kDistPayload.data(),
                       dist_count,
                       kDistBits,
                       dist_table_);
}

bool DeflateDecoder::read_lengths(DeflateInput& in,
                                  uint8_t* lengths,
                                  size_t count) {
  for (size_t i = 0; i < count;) {
    if (overran(in)) {
      return false;
    }
    refill(in);
    const uint32_t entry = length_table_[bits_ & 127];
    if ((entry & kEntryBad) != 0) {
      return false;
    }
    take_bits(entry_bits(entry));
    const uint32_t symbol = entry_value(entry);
    if (symbol < 16) {
      lengths[i++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && i == 0) {
      return false;
    }
    const uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
    const size_t repeat = symbol == 16   ? 3 + take_bits(2)
                          : symbol == 17 ? 3 + take_bits(3)
                                         : 11 + take_bits(7);
    if (i + repeat > count) {
      return false;
    }
    std::memset(lengths + i, value, repeat);
    i += repeat;
  }
  return true;
}

}  // namespace shp
