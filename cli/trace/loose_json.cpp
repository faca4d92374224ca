#include "cli/trace/loose_json.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "common/jsonl/decimal.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace shp {
namespace {

bool ends_bare(char c) {
  return c == ',' || c == '}' || c == ']' || c == ':' ||
         static_cast<unsigned char>(c) <= ' ';
}

// Of µs: 2^63 ns have 16.
constexpr int kMaxDigits = 16;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The next quote or bracket, or a place at or behind `end`.
const char* find_structural(const char* at, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i fold = _mm_set1_epi8(0x20);
  const __m128i open = _mm_set1_epi8('{');   // "[" | 0x20
  const __m128i close = _mm_set1_epi8('}');  // "]" | 0x20
  for (; at < end; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i folded = _mm_or_si128(bytes, fold);
    const __m128i hit =
        _mm_or_si128(_mm_cmpeq_epi8(bytes, quote),
                     _mm_or_si128(_mm_cmpeq_epi8(folded, open),
                                  _mm_cmpeq_epi8(folded, close)));
    const int mask = _mm_movemask_epi8(hit);
    if (mask != 0) {
      return at + __builtin_ctz(static_cast<unsigned>(mask));
    }
  }
  return at;
#else
  while (at < end && *at != '"' && *at != '{' && *at != '}' && *at != '[' &&
         *at != ']') {
    ++at;
  }
  return at;
#endif
}

// Decimal digits with an optional fraction, as thousandths; `at` moves behind
// them. False when there is none or it does not fit.
bool scan_thousandths(const char*& at, const char* end, int64_t& out) {
  int64_t whole = 0;
  const char* start = at;
  at = scan_digits(at, end, whole);
  for (; at < end && is_digit(*at); ++at) {
    if (at - start == kMaxDigits) {
      return false;
    }
    whole = whole * 10 + (*at - '0');
  }
  if (at == start) {
    return false;
  }
  int64_t fraction = 0;
  if (at < end && *at == '.') {
    ++at;
    int64_t unit = 100;
    for (; at < end && is_digit(*at); ++at) {
      fraction += unit * (*at - '0');
      unit /= 10;
    }
  }
  return !__builtin_mul_overflow(whole, int64_t{1000}, &whole) &&
         !__builtin_add_overflow(whole, fraction, &out);
}

std::optional<int64_t> ns_with_exponent(std::string_view token) {
  const std::string text(token);
  char* behind = nullptr;
  const long double ns = std::strtold(text.c_str(), &behind) * 1000.0L;
  const bool whole = behind == text.c_str() + text.size() && !text.empty();
  if (!whole || !std::isfinite(ns) || std::fabs(ns) > 9.0e18L) {
    return std::nullopt;
  }
  return std::llroundl(ns);
}

std::string_view without_quotes(std::string_view token) {
  const bool quoted =
      token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return quoted ? token.substr(1, token.size() - 2) : token;
}

}  // namespace

const char* skip_loose_string(const char* at, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  while (at < end) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const int mask = _mm_movemask_epi8(_mm_or_si128(
        _mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
    if (mask == 0) {
      at += 16;
      continue;
    }
    at += __builtin_ctz(static_cast<unsigned>(mask));
    if (at >= end) {
      return nullptr;
    }
    if (*at == '"') {
      return at + 1;
    }
    at += 2;
  }
#else
  while (at < end) {
    if (*at == '"') {
      return at + 1;
    }
    at += *at == '\\' ? 2 : 1;
  }
#endif
  return nullptr;
}

const char* skip_loose_nested(const char* at, const char* end) {
  uint64_t depth = 0;
  while (true) {
    at = find_structural(at, end);
    if (at >= end) {
      return nullptr;
    }
    const char found = *at++;
    if (found == '"') {
      at = skip_loose_string(at, end);
      if (at == nullptr) {
        return nullptr;
      }
    } else if (found == '{' || found == '[') {
      ++depth;
    } else if (--depth == 0) {
      return at;
    }
  }
}

const char* skip_loose_value(const char* at, const char* end) {
  if (at >= end) {
    return nullptr;
  }
  if (*at == '"') {
    return skip_loose_string(at + 1, end);
  }
  if (*at == '{' || *at == '[') {
    return skip_loose_nested(at, end);
  }
  while (at < end && !ends_bare(*at)) {
    ++at;
  }
  return at < end ? at : nullptr;
}

std::optional<int64_t> loose_ns(std::string_view token) {
  token = without_quotes(token);
  const char* at = token.data();
  const char* end = at + token.size();
  const bool negative = at < end && *at == '-';
  at += negative ? 1 : 0;
  int64_t value = 0;
  if (!scan_thousandths(at, end, value)) {
    return std::nullopt;
  }
  if (at != end) {
    return (*at | 0x20) == 'e' ? ns_with_exponent(token) : std::nullopt;
  }
  return negative ? -value : value;
}

std::optional<int64_t> loose_int(std::string_view token) {
  token = without_quotes(token);
  int64_t value = 0;
  const auto [behind, problem] =
      std::from_chars(token.data(), token.data() + token.size(), value);
  const bool whole = behind == token.data() + token.size();
  return problem == std::errc() && whole ? std::optional<int64_t>(value)
                                         : std::nullopt;
}

std::string_view loose_text(std::string_view token) {
  const std::string_view text = without_quotes(token);
  return text.size() == token.size() ? std::string_view() : text;
}

std::string_view loose_member(std::string_view text, std::string_view key) {
  // The searches load 16 bytes at a time, which a bare view does not promise.
  std::string padded(text);
  padded.append(16, '\0');
  const char* start = padded.data();
  const char* end = start + text.size();
  const char* at = skip_loose_space(start, end);
  if (at == end || *at != '{') {
    return {};
  }
  ++at;
  std::string_view found;
  while (true) {
    at = skip_loose_space(at, end);
    if (at >= end || *at != '"') {
      return found;
    }
    const char* name = at + 1;
    at = skip_loose_string(name, end);
    if (at == nullptr) {
      return found;
    }
    const std::string_view member(name, static_cast<size_t>(at - name - 1));
    at = skip_loose_space(at, end);
    if (at >= end || *at != ':') {
      return found;
    }
    at = skip_loose_space(at + 1, end);
    const char* value = at;
    at = skip_loose_value(at, end);
    if (at == nullptr) {
      return found;
    }
    if (member == key) {
      found = text.substr(static_cast<size_t>(value - start),
                          static_cast<size_t>(at - value));
    }
    at = skip_loose_space(at, end);
    at += at < end && *at == ',' ? 1 : 0;
  }
}

}  // namespace shp
