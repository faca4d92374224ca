#include "cli/trace/deflate_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cli/trace/huffman_table.h"

namespace shp {
namespace {

constexpr size_t kLitSymbols = 288;
constexpr size_t kDistSymbols = 32;
// A dynamic block's header: 14 bits, 19 * 3, and 320 lengths of 14 bits at
// most.
constexpr size_t kMaxHeaderBytes = 640;

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

uint64_t load64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

// Copies `length` bytes from `distance` back; may write 16 bytes more.
uint8_t* copy_match(uint8_t* to, size_t distance, size_t length) {
  const uint8_t* from = to - distance;
  uint8_t* end = to + length;
  if (distance >= 16) {
    do {
      std::memcpy(to, from, 16);
      to += 16;
      from += 16;
    } while (to < end);
  } else if (distance >= 8) {
    do {
      std::memcpy(to, from, 8);
      to += 8;
      from += 8;
    } while (to < end);
  } else if (distance == 1) {
    std::memset(to, *from, length);
  } else {
    while (to < end) {
      *to++ = *from++;
    }
  }
  return end;
}

}  // namespace

DeflateDecoder::DeflateDecoder() : out_(kWindowBytes + kOutBytes + kSlop) {}

void DeflateDecoder::reset() {
  reset(0, 0, {});
}

void DeflateDecoder::reset(unsigned bits,
                           unsigned value,
                           std::string_view history) {
  state_ = State::kHeader;
  final_ = false;
  bits_ = value;
  bit_count_ = bits;
  stored_left_ = 0;
  // What was not taken yet stays in front.
  const size_t waiting = at_ - taken_;
  std::memmove(out_.data(), out_.data() + taken_, waiting);
  std::memcpy(out_.data() + waiting, history.data(), history.size());
  taken_ = history.empty() ? 0 : waiting + history.size();
  begin_ = waiting;
  at_ = waiting + history.size();
}

std::string_view DeflateDecoder::take() {
  const std::string_view out(
      reinterpret_cast<const char*>(out_.data()) + taken_, at_ - taken_);
  taken_ = at_;
  return out;
}

std::string_view DeflateDecoder::window() const {
  const size_t bytes = std::min(at_ - begin_, kWindowBytes);
  return {reinterpret_cast<const char*>(out_.data()) + at_ - bytes, bytes};
}

// Keeps the window, and what was not taken, at the front of the buffer.
void DeflateDecoder::slide() {
  const size_t keep =
      std::max(std::min(at_ - begin_, kWindowBytes), at_ - taken_);
  const size_t by = at_ - keep;
  std::memmove(out_.data(), out_.data() + by, keep);
  begin_ = begin_ > by ? begin_ - by : 0;
  taken_ -= by;
  at_ = keep;
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

// Gives whole bytes that were read ahead back to the input.
void DeflateDecoder::unread(DeflateInput& in) {
  in.next -= bit_count_ >> 3;
  bit_count_ &= 7;
  bits_ &= (1ULL << bit_count_) - 1;
}

bool DeflateDecoder::has(const DeflateInput& in, size_t bytes) const {
  return in.last || in.next + bytes <= in.end;
}

bool DeflateDecoder::overran(const DeflateInput& in) const {
  return in.next - (bit_count_ >> 3) > in.end;
}

DeflateDecoder::Stop DeflateDecoder::run(DeflateInput& in) {
  while (true) {
    Stop stop = Stop::kBlockEnd;
    switch (state_) {
      case State::kHeader:
        if (final_) {
          unread(in);
          bits_ = bit_count_ = 0;
          return Stop::kStreamEnd;
        }
        if (!has(in, kMaxHeaderBytes)) {
          return Stop::kInput;
        }
        if (!read_header(in)) {
          return overran(in) ? Stop::kInput : Stop::kBad;
        }
        continue;
      case State::kStored:
        stop = copy_stored(in);
        break;
      case State::kCodes:
        stop = decode(in);
        break;
    }
    if (stop != Stop::kBlockEnd) {
      return stop;
    }
    state_ = State::kHeader;
    unread(in);
    if (!final_) {
      return Stop::kBlockEnd;
    }
  }
}

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

DeflateDecoder::Stop DeflateDecoder::copy_stored(DeflateInput& in) {
  while (stored_left_ > 0) {
    if (at_ >= kWindowBytes + kOutBytes) {
      if (taken_ != at_) {
        return Stop::kOutput;
      }
      slide();
    }
    if (in.next >= in.end) {
      return Stop::kInput;
    }
    const size_t some = std::min({stored_left_,
                                  static_cast<size_t>(in.end - in.next),
                                  kWindowBytes + kOutBytes - at_});
    std::memcpy(out_.data() + at_, in.next, some);
    in.next += some;
    at_ += some;
    stored_left_ -= some;
  }
  return Stop::kBlockEnd;
}

DeflateDecoder::Stop DeflateDecoder::decode(DeflateInput& in) {
  if (at_ >= kWindowBytes + kOutBytes) {
    if (taken_ != at_) {
      return Stop::kOutput;
    }
    slide();
  }
  // A step reads 8 bytes at most twice, and what was read ahead may lie behind
  // the end once nothing more comes.
  const uint8_t* safe_in = in.last ? in.end + 16 : in.end - 32;
  const size_t safe_out = kWindowBytes + kOutBytes;
  const uint32_t* lits = lit_table_.data();
  const uint32_t* dists = dist_table_.data();
  constexpr uint64_t kLitMask = (1U << kLitBits) - 1;
  constexpr uint64_t kDistMask = (1U << kDistBits) - 1;
  uint8_t* out = out_.data();
  while (in.next <= safe_in && at_ < safe_out) {
    refill(in);
    uint32_t entry = lits[bits_ & kLitMask];
    // Two literals of 11 bits leave room for all that a match needs.
    for (int i = 0; i < 2 && (entry & kEntryLiteral) != 0; ++i) {
      take_bits(entry_bits(entry));
      out[at_++] = static_cast<uint8_t>(entry >> 16);
      entry = lits[bits_ & kLitMask];
    }
    if ((entry & kEntryLiteral) != 0) {
      continue;
    }
    if ((entry & kEntrySecond) != 0) {
      refill(in);
      take_bits(kLitBits);
      entry =
          lits[entry_value(entry) + (bits_ & ((1U << entry_extra(entry)) - 1))];
      if ((entry & kEntryLiteral) != 0) {
        take_bits(entry_bits(entry));
        out[at_++] = static_cast<uint8_t>(entry >> 16);
        continue;
      }
    }
    if ((entry & kEntrySpecial) != 0) {
      take_bits(entry_bits(entry));
      return overran(in)                ? Stop::kInput
             : (entry & kEntryEnd) != 0 ? Stop::kBlockEnd
                                        : Stop::kBad;
    }
    refill(in);
    take_bits(entry_bits(entry));
    const size_t length = entry_value(entry) + take_bits(entry_extra(entry));
    uint32_t far = dists[bits_ & kDistMask];
    if ((far & kEntrySecond) != 0) {
      take_bits(kDistBits);
      far = dists[entry_value(far) + (bits_ & ((1U << entry_extra(far)) - 1))];
    }
    take_bits(entry_bits(far));
    const size_t distance = entry_value(far) + take_bits(entry_extra(far));
    if ((far & kEntrySpecial) != 0 || distance > at_ - begin_) {
      return overran(in) ? Stop::kInput : Stop::kBad;
    }
    copy_match(out + at_, distance, length);
    at_ += length;
  }
  if (overran(in)) {
    return Stop::kInput;
  }
  return at_ >= safe_out ? Stop::kOutput : Stop::kInput;
}

}  // namespace shp
