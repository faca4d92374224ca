#include "cli/trace/event_walk.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace shp {
namespace {

constexpr size_t kBlock = StructureIndex::kBlockBytes;
constexpr size_t kLook = 16;  // bytes that are looked at together

unsigned lowest(uint64_t bits) {
  return static_cast<unsigned>(__builtin_ctzll(bits));
}

#if defined(__SSE2__)

__m128i load(const char* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

unsigned mask_of(__m128i hit) {
  return static_cast<unsigned>(_mm_movemask_epi8(hit));
}

// The bytes of the next kLook that are no white space.
unsigned dark(const char* at) {
  const __m128i bytes = load(at);
  return mask_of(
      _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8('!')), bytes));
}

// The bytes of the next kLook that end a bare word.
unsigned ends_word(const char* at) {
  const __m128i bytes = load(at);
  const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
  const __m128i space =
      _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes);
  const __m128i mark =
      _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(',')),
                   _mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}')),
                                _mm_cmpeq_epi8(bytes, _mm_set1_epi8(':'))));
  return mask_of(_mm_or_si128(space, mark));
}

#else

template <typename Test>
unsigned mask_where(const char* at, Test test) {
  unsigned out = 0;
  for (unsigned i = 0; i < kLook; ++i) {
    out |= test(at[i]) ? 1U << i : 0;
  }
  return out;
}

unsigned dark(const char* at) {
  return mask_where(at,
                    [](char c) { return static_cast<unsigned char>(c) > ' '; });
}

unsigned ends_word(const char* at) {
  return mask_where(at, [](char c) {
    return c == ',' || c == '}' || c == ']' || c == ':' ||
           static_cast<unsigned char>(c) <= ' ';
  });
}

#endif

// Goes from quote to quote and from bracket to bracket.
class Walk {
 public:
  Walk(const StructureIndex& index, size_t begin)
      : text_(index.text()),
        end_(index.end()),
        blocks_(index.blocks()),
        first_(index.begin() / kBlock),
        block_count_((index.end() - 1) / kBlock - first_ + 1) {
    go_to(begin);
  }

  char byte(size_t at) const { return text_[at]; }
  const char* place(size_t at) const { return text_ + at; }
  std::string_view token(size_t begin, size_t end) const {
    return {text_ + begin, end - begin};
  }

  // Quotes before `at` are passed.
  void go_to(size_t at) {
    block_ = at / kBlock - first_;
    quotes_ = block_ < block_count_
                  ? blocks_[block_].quotes & ~uint64_t{0} << at % kBlock
                  : 0;
  }

  // The next quote that begins or ends a string; end_ when there is none.
  size_t next_quote() {
    const size_t at = peek_quote();
    quotes_ &= quotes_ - 1;
    return at;
  }

  size_t peek_quote() {
    while (quotes_ == 0)
      [[unlikely]] {
        if (++block_ >= block_count_) {
          return end_;
        }
        quotes_ = blocks_[block_].quotes;
      }
    return (first_ + block_) * kBlock + lowest(quotes_);
  }

  // The next byte from `at` on that is no white space, or one behind the end.
  // The first two are looked at one by one: branches are guessed right in most
  // files, and then nothing waits for the bytes.
  size_t skip_space(size_t at) const {
    if (is_dark(text_[at])) {
      return at;
    }
    ++at;
    return is_dark(text_[at]) ? at : skip_more_space(at);
  }

  // Behind the bare word at `at`; end_ when there is a quote in it.
  size_t skip_word(size_t at) {
    unsigned found = ends_word(text_ + at);
    while (found == 0 && at < end_) {
      at += kLook;
      found = ends_word(text_ + at);
    }
    at += found == 0 ? 0 : lowest(found);
    return peek_quote() >= at ? at : end_;
  }

  // Behind the bracket that closes the one at `at`.
  size_t skip_nested(size_t at) {
    size_t block = at / kBlock - first_;
    uint64_t wanted = ~uint64_t{0} << at % kBlock;
    for (size_t depth = 0; block < block_count_; ++block) {
      const uint64_t opens = blocks_[block].opens & wanted;
      uint64_t left = opens | (blocks_[block].closes & wanted);
      for (; left != 0; left &= left - 1) {
        const uint64_t bit = left & (0 - left);
        depth += (opens & bit) != 0 ? 1 : ~size_t{0};
        if (depth == 0) {
          const size_t behind = (first_ + block) * kBlock + lowest(bit) + 1;
          go_to(behind);
          return behind;
        }
      }
      wanted = ~uint64_t{0};
    }
    return end_;
  }

  // Behind the value at `at`, of any kind.
  size_t skip_value(size_t at) {
    const char first = text_[at];
    if (first == '"') {
      next_quote();
      return next_quote() + 1;
    }
    return first == '{' || first == '[' ? skip_nested(at) : skip_word(at);
  }

 private:
  static bool is_dark(char c) { return static_cast<unsigned char>(c) > ' '; }

  size_t skip_more_space(size_t at) const {
    unsigned found = dark(text_ + at);
    while (found == 0 && at < end_) {
      at += kLook;
      found = dark(text_ + at);
    }
    return at + (found == 0 ? 0 : lowest(found));
  }

  const char* text_;
  size_t end_;
  const StructureBits* blocks_;
  size_t first_;  // number of blocks_[0] in the text
  size_t block_count_;
  size_t block_ = 0;  // in blocks_
  uint64_t quotes_ = 0;
};

}  // namespace

const char* walk_event(const StructureIndex& index,
                       size_t begin,
                       EventFields& fields) {
  Walk walk(index, begin);
  std::string_view unused;
  size_t at = begin + 1;
  while (true) {
    at = walk.skip_space(at);
    if (walk.byte(at) != '"') {
      const bool closed = walk.byte(at) == '}' && at < index.end();
      return closed ? walk.place(at + 1) : nullptr;
    }
    walk.next_quote();
    const size_t close = walk.next_quote();
    const size_t colon = walk.skip_space(close + 1);
    if (walk.byte(colon) != ':') {
      return nullptr;
    }
    const size_t value = walk.skip_space(colon + 1);
    const size_t behind = walk.skip_value(value);
    if (behind == value || behind >= index.end()) {
      return nullptr;
    }
    event_slot(walk.place(at + 1), close - at - 1, fields, unused) =
        walk.token(value, behind);
    at = walk.skip_space(behind);
    if (walk.byte(at) != ',' && walk.byte(at) != '}') {
      return nullptr;
    }
    at += walk.byte(at) == ',' ? 1 : 0;
  }
}

}  // namespace shp
