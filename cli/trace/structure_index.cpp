#include "cli/trace/structure_index.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace shp {
namespace {

// What a block's bytes are, before strings are told apart.
struct ByteBits {
  uint64_t quotes;
  uint64_t backslashes;
  uint64_t opens;
  uint64_t closes;
};

#if defined(__SSE2__)

// "[" | 0x20 is "{", "]" | 0x20 is "}".
constexpr char kFold = 0x20;

struct Sse2 {
  static uint64_t equal(const __m128i (&part)[4], char wanted) {
    const __m128i all = _mm_set1_epi8(wanted);
    uint64_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(part[i], all));
      bits |= static_cast<uint64_t>(static_cast<uint32_t>(mask)) << (16 * i);
    }
    return bits;
  }
  static ByteBits read(const char* at) {
    __m128i bytes[4];
    __m128i folded[4];
    for (int i = 0; i < 4; ++i) {
      bytes[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
      folded[i] = _mm_or_si128(bytes[i], _mm_set1_epi8(kFold));
    }
    return {equal(bytes, '"'),
            equal(bytes, '\\'),
            equal(folded, '{'),
            equal(folded, '}')};
  }
};

struct Avx2 {
  __attribute__((target("avx2"))) static uint64_t equal(__m256i low,
                                                        __m256i high,
                                                        char wanted) {
    const __m256i all = _mm256_set1_epi8(wanted);
    const auto first = static_cast<uint32_t>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all)));
    const auto second = static_cast<uint32_t>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all)));
    return first | static_cast<uint64_t>(second) << 32;
  }
  __attribute__((target("avx2"))) static ByteBits read(const char* at) {
    const __m256i low =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i high =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
    const __m256i fold = _mm256_set1_epi8(kFold);
    const __m256i low_folded = _mm256_or_si256(low, fold);
    const __m256i high_folded = _mm256_or_si256(high, fold);
    return {equal(low, high, '"'),
            equal(low, high, '\\'),
            equal(low_folded, high_folded, '{'),
            equal(low_folded, high_folded, '}')};
  }
};

#else

struct Plain {
  static ByteBits read(const char* at) {
    ByteBits out{};
    for (unsigned i = 0; i < StructureIndex::kBlockBytes; ++i) {
      const char c = at[i];
      const uint64_t bit = uint64_t{1} << i;
      out.quotes |= c == '"' ? bit : 0;
      out.backslashes |= c == '\\' ? bit : 0;
      out.opens |= c == '{' || c == '[' ? bit : 0;
      out.closes |= c == '}' || c == ']' ? bit : 0;
    }
    return out;
  }
};

#endif

// What the blocks before leave open.
struct Carry {
  uint64_t in_string = 0;  // all ones when a string is open
  bool escaped = false;    // the next byte is
};

// The quotes that no backslash takes away. Only inside strings does one.
uint64_t unescaped(const ByteBits& bytes, Carry& carry) {
  uint64_t left = bytes.quotes | bytes.backslashes;
  left &= carry.escaped ? ~uint64_t{1} : ~uint64_t{0};
  carry.escaped = false;
  uint64_t quotes = 0;
  bool in_string = carry.in_string != 0;
  while (left != 0) {
    const uint64_t bit = left & (0 - left);
    left ^= bit;
    if ((bytes.quotes & bit) != 0) {
      quotes |= bit;
      in_string = !in_string;
    } else if (in_string) {
      const uint64_t next = bit << 1;
      left &= ~next;
      carry.escaped = next == 0;
    }
  }
  return quotes;
}

// Bit i tells whether an odd number of bits up to i is set.
uint64_t running_parity(uint64_t bits) {
  bits ^= bits << 1;
  bits ^= bits << 2;
  bits ^= bits << 4;
  bits ^= bits << 8;
  bits ^= bits << 16;
  return bits ^ bits << 32;
}

StructureBits structure_of(const ByteBits& bytes, Carry& carry) {
  StructureBits out;
  out.quotes = bytes.quotes;
  if (bytes.backslashes != 0 || carry.escaped) [[unlikely]] {
    out.quotes = unescaped(bytes, carry);
  }
  const uint64_t inside = running_parity(out.quotes) ^ carry.in_string;
  carry.in_string = 0 - (inside >> 63);
  out.opens = bytes.opens & ~inside;
  out.closes = bytes.closes & ~inside;
  return out;
}

void keep_only(ByteBits& bytes, uint64_t bits) {
  bytes.quotes &= bits;
  bytes.backslashes &= bits;
  bytes.opens &= bits;
  bytes.closes &= bits;
}

// `text` is the beginning of a block; the first `skip` bytes and those from
// `size` on do not count.
template <ByteBits (*kRead)(const char*)>
inline __attribute__((always_inline)) void index_blocks(const char* text,
                                                        size_t skip,
                                                        size_t size,
                                                        StructureBits* out) {
  constexpr size_t kBlock = StructureIndex::kBlockBytes;
  Carry carry;
  for (size_t at = 0; at < size; at += kBlock) {
    ByteBits bytes = kRead(text + at);
    if (at == 0) {
      keep_only(bytes, ~uint64_t{0} << skip);
    }
    if (size - at < kBlock) {
      keep_only(bytes, (uint64_t{1} << (size - at)) - 1);
    }
    *out++ = structure_of(bytes, carry);
  }
}

#if defined(__SSE2__)
__attribute__((target("avx2"))) void index_by_avx2(const char* text,
                                                   size_t skip,
                                                   size_t size,
                                                   StructureBits* out) {
  index_blocks<Avx2::read>(text, skip, size, out);
}
#endif

}  // namespace

bool StructureIndex::machine_is_wide() {
#if defined(__SSE2__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

void StructureIndex::build(const char* text,
                           size_t begin,
                           size_t end,
                           bool wide) {
  text_ = text;
  begin_ = begin;
  end_ = end;
  const size_t skip = begin % kBlockBytes;
  const size_t first = begin - skip;
  bits_.resize((end - first + kBlockBytes - 1) / kBlockBytes);
#if defined(__SSE2__)
  if (wide) {
    index_by_avx2(text + first, skip, end - first, bits_.data());
  } else {
    index_blocks<Sse2::read>(text + first, skip, end - first, bits_.data());
  }
#else
  static_cast<void>(wide);
  index_blocks<Plain::read>(text + first, skip, end - first, bits_.data());
#endif
}

}  // namespace shp
