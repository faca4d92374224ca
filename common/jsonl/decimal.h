// Integers to decimal digits without the cost of a general formatter: the span
// line's inner loop. Pure.
#pragma once

#include <cstdint>
#include <cstring>

namespace shp {

inline constexpr int kMaxDecimalDigits = 20;

namespace detail {
struct DigitPairs {
  char text[200];
  constexpr DigitPairs() : text{} {
    for (int i = 0; i < 100; ++i) {
      text[2 * i] = static_cast<char>('0' + i / 10);
      text[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
  }
};
inline constexpr DigitPairs kDigitPairs;

inline void put_pair(char* at, uint32_t value) {
  std::memcpy(at, kDigitPairs.text + 2 * value, 2);
}

// Exactly eight digits, leading zeros included. value < 10^8.
inline void put_eight(char* at, uint32_t value) {
  const uint32_t high = value / 10'000;
  const uint32_t low = value % 10'000;
  put_pair(at, high / 100);
  put_pair(at + 2, high % 100);
  put_pair(at + 4, low / 100);
  put_pair(at + 6, low % 100);
}

// One to eight digits, none in front. value < 10^8.
inline char* put_short(char* at, uint32_t value) {
  char digits[8];
  put_eight(digits, value);
  const int skip = value < 10           ? 7
                   : value < 100        ? 6
                   : value < 1'000      ? 5
                   : value < 10'000     ? 4
                   : value < 100'000    ? 3
                   : value < 1'000'000  ? 2
                   : value < 10'000'000 ? 1
                                        : 0;
  // A fixed eight bytes are one store; what lies behind is overwritten next.
  char shifted[16] = {};
  std::memcpy(shifted, digits, 8);
  std::memcpy(at, shifted + skip, 8);
  return at + (8 - skip);
}
}  // namespace detail

// Reads up to 16 digits while eight bytes can be read before `end`, and adds
// them to `value`, which must have room. Returns the position behind them;
// where less than eight bytes are left, digits may follow.
inline const char* scan_digits(const char* at,
                               const char* end,
                               int64_t& value) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  constexpr int64_t kTens[] = {
      1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
  constexpr uint64_t kHigh = 0xf0f0'f0f0'f0f0'f0f0;
  constexpr uint64_t kZeros = 0x3030'3030'3030'3030;
  constexpr uint64_t kPairs = 0x0000'00ff'0000'00ff;
  for (int step = 0; step < 2 && end - at >= 8; ++step) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    // A digit is 0x30 to 0x39: its high half stays 3 when 6 is added. What a
    // sum carries over goes to bytes behind one that is no digit.
    const uint64_t odd = ((word & kHigh) ^ kZeros) |
                         (((word + 0x0606'0606'0606'0606) & kHigh) ^ kZeros);
    const int digits = odd == 0 ? 8 : __builtin_ctzll(odd) / 8;
    if (digits == 0) {
      break;
    }
    // As if zeros stood in front; then two digits to a byte, and four of every
    // other byte at once.
    word = (word - kZeros) << (64 - 8 * digits);
    word = word * 10 + (word >> 8);
    word = ((word & kPairs) * (100 + (uint64_t{1'000'000} << 32)) +
            (word >> 16 & kPairs) * (1 + (uint64_t{10'000} << 32))) >>
           32;
    value = value * kTens[digits] + static_cast<int64_t>(word);
    at += digits;
    if (digits < 8) {
      break;
    }
  }
#else
  static_cast<void>(end);
  static_cast<void>(value);
#endif
  return at;
}

// Writes `value` at `at` and returns the end. May touch kMaxDecimalDigits + 8
// bytes.
inline char* put_decimal(char* at, uint64_t value) {
  constexpr uint64_t kEight = 100'000'000;
  if (value < kEight) {
    return detail::put_short(at, static_cast<uint32_t>(value));
  }
  const uint64_t high = value / kEight;
  const auto low = static_cast<uint32_t>(value % kEight);
  at = high < kEight ? detail::put_short(at, static_cast<uint32_t>(high))
                     : put_decimal(at, high);
  detail::put_eight(at, low);
  return at + 8;
}

inline char* put_decimal(char* at, int64_t value) {
  if (value < 0) {
    *at++ = '-';
    return put_decimal(at, 0 - static_cast<uint64_t>(value));
  }
  return put_decimal(at, static_cast<uint64_t>(value));
}

}  // namespace shp
