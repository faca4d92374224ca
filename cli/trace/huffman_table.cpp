#include "cli/trace/huffman_table.h"

#include <algorithm>
#include <array>

namespace shp {
namespace {

constexpr unsigned kMaxBits = 15;
constexpr size_t kMaxSymbols = 288;

using Counts = std::array<unsigned, kMaxBits + 1>;

uint32_t reversed(uint32_t code, unsigned bits) {
  uint32_t out = 0;
  for (unsigned i = 0; i < bits; ++i) {
    out |= (code >> i & 1) << (bits - 1 - i);
  }
  return out;
}

// Codes left over when all lengths are used; negative: too many.
int codes_left(const Counts& counts) {
  int left = 1;
  for (unsigned bits = 1; bits <= kMaxBits; ++bits) {
    left = left * 2 - static_cast<int>(counts[bits]);
    if (left < 0) {
      return left;
    }
  }
  return left;
}

// Index bits of the second table for codes that begin alike, the first of which
// has `bits`: as many as hold the codes from here on that fill it.
unsigned second_bits(const Counts& counts, unsigned bits, unsigned index_bits) {
  unsigned wide = bits - index_bits;
  int left = 1 << wide;
  while (wide + index_bits < kMaxBits) {
    left -= static_cast<int>(counts[wide + index_bits]);
    if (left <= 0) {
      break;
    }
    ++wide;
    left *= 2;
  }
  return wide;
}

// Every index of the table whose low bits are `code`.
void fill(uint32_t* table,
          uint32_t code,
          unsigned bits,
          unsigned index_bits,
          uint32_t entry) {
  for (uint32_t i = code; i < (1U << index_bits); i += 1U << bits) {
    table[i] = entry;
  }
}

// Symbols by length, then by number: the order of their codes.
std::array<uint16_t, kMaxSymbols> sorted_symbols(const uint8_t* lengths,
                                                 size_t count,
                                                 const Counts& counts) {
  Counts place{};
  for (unsigned bits = 1; bits < kMaxBits; ++bits) {
    place[bits + 1] = place[bits] + counts[bits];
  }
  std::array<uint16_t, kMaxSymbols> order{};
  for (size_t i = 0; i < count; ++i) {
    if (lengths[i] != 0) {
      order[place[lengths[i]]++] = static_cast<uint16_t>(i);
    }
  }
  return order;
}

// Puts codes into the table in their order, and makes second tables on the way.
class TableFiller {
 public:
  TableFiller(Counts counts, unsigned index_bits, std::vector<uint32_t>& table)
      : counts_(counts), index_bits_(index_bits), table_(table) {
    table_.assign(size_t{1} << index_bits, kEntryBad | 1);
  }

  void add(unsigned bits, uint32_t payload) {
    code_ <<= bits - last_bits_;
    last_bits_ = bits;
    const uint32_t low = reversed(code_++, bits);
    if (bits <= index_bits_) {
      fill(table_.data(), low, bits, index_bits_, payload | bits);
    } else {
      open_second(low & ((1U << index_bits_) - 1), bits);
      const unsigned rest = bits - index_bits_;
      fill(table_.data() + second_at_,
           low >> index_bits_,
           rest,
           second_wide_,
           payload | rest);
    }
    --counts_[bits];
  }

 private:
  void open_second(uint32_t prefix, unsigned bits) {
    if (prefix == second_prefix_) {
      return;
    }
    second_prefix_ = prefix;
    second_wide_ = second_bits(counts_, bits, index_bits_);
    second_at_ = table_.size();
    table_.resize(second_at_ + (size_t{1} << second_wide_), kEntryBad | 1);
    table_[prefix] = static_cast<uint32_t>(second_at_) << 16 | kEntrySecond |
                     second_wide_ << 8 | index_bits_;
  }

  Counts counts_;  // codes still to come, by length
  unsigned index_bits_;
  std::vector<uint32_t>& table_;
  uint32_t code_ = 0;
  unsigned last_bits_ = 0;
  uint32_t second_prefix_ = ~0U;
  size_t second_at_ = 0;
  unsigned second_wide_ = 0;
};

}  // namespace

bool build_huffman(const uint8_t* lengths,
                   const uint32_t* payload,
                   size_t count,
                   unsigned index_bits,
                   std::vector<uint32_t>& table) {
  Counts counts{};
  for (size_t i = 0; i < count; ++i) {
    ++counts[lengths[i]];
  }
  const unsigned used = static_cast<unsigned>(count) - counts[0];
  counts[0] = 0;
  const int left = codes_left(counts);
  const bool lone = used == 0 || (used == 1 && counts[1] == 1);
  if (left < 0 || (left > 0 && !lone)) {
    return false;
  }
  const auto order = sorted_symbols(lengths, count, counts);
  TableFiller filler(counts, index_bits, table);
  for (unsigned i = 0; i < used; ++i) {
    filler.add(lengths[order[i]], payload[order[i]]);
  }
  return true;
}

}  // namespace shp
