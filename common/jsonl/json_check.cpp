#include "common/jsonl/json_check.h"

#include <array>
#include <charconv>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "common/base/utf8.h"
#include "common/jsonl/decimal.h"

namespace shp {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Behind the run of bytes that a string may hold without a second look.
const char* skip_plain(const char* at, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i space = _mm_set1_epi8(' ');
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // A signed comparison: bytes from 0x80 up count as less than a space.
    const __m128i special =
        _mm_or_si128(_mm_cmplt_epi8(bytes, space),
                     _mm_or_si128(_mm_cmpeq_epi8(bytes, quote),
                                  _mm_cmpeq_epi8(bytes, backslash)));
    const int mask = _mm_movemask_epi8(special);
    if (mask != 0) {
      return at + __builtin_ctz(static_cast<unsigned>(mask));
    }
    at += 16;
  }
#endif
  while (at < end && static_cast<signed char>(*at) >= ' ' && *at != '"' &&
         *at != '\\') {
    ++at;
  }
  return at;
}

int hex_digit(char c) {
  if (is_digit(c)) {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The four hexadecimal digits at `at`, or -1.
int hex4(const char* at, const char* end) {
  if (end - at < 4) {
    return -1;
  }
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hex_digit(at[i]);
    if (digit < 0) {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

const char* check_escape(const char* at, const char* end) {
  if (end - at < 2) {
    return nullptr;
  }
  if (at[1] == 'u') {
    return hex4(at + 2, end) < 0 ? nullptr : at + 6;
  }
  return std::strchr("\"\\/bfnrt", at[1]) != nullptr && at[1] != '\0' ? at + 2
                                                                      : nullptr;
}

const char* skip_digits(const char* at, const char* end) {
  while (at < end && is_digit(*at)) {
    ++at;
  }
  return at;
}

const char* check_number(const char* at, const char* end) {
  if (at < end && *at == '-') {
    ++at;
  }
  const char* digits = at;
  at = skip_digits(at, end);
  if (at == digits || (*digits == '0' && at - digits > 1)) {
    return nullptr;
  }
  if (at < end && *at == '.') {
    const char* fraction = at + 1;
    at = skip_digits(fraction, end);
    if (at == fraction) {
      return nullptr;
    }
  }
  if (at < end && (*at | 0x20) == 'e') {
    ++at;
    if (at < end && (*at == '+' || *at == '-')) {
      ++at;
    }
    const char* exponent = at;
    at = skip_digits(exponent, end);
    if (at == exponent) {
      return nullptr;
    }
  }
  return at;
}

const char* check_word(const char* at, const char* end, std::string_view word) {
  const bool same = static_cast<size_t>(end - at) >= word.size() &&
                    std::memcmp(at, word.data(), word.size()) == 0;
  return same ? at + word.size() : nullptr;
}

const char* check_scalar(const char* at, const char* end) {
  switch (*at) {
    case '"':
      return check_json_string(at, end);
    case 't':
      return check_word(at, end, "true");
    case 'f':
      return check_word(at, end, "false");
    case 'n':
      return check_word(at, end, "null");
    default:
      return check_number(at, end);
  }
}

// A key and its colon.
const char* check_key(const char* at, const char* end) {
  if (at == end || *at != '"') {
    return nullptr;
  }
  at = check_json_string(at, end);
  if (at == nullptr) {
    return nullptr;
  }
  at = skip_json_space(at, end);
  return at < end && *at == ':' ? skip_json_space(at + 1, end) : nullptr;
}

// The open brackets around the place where the checker is.
class Nesting {
 public:
  bool empty() const { return depth_ == 0; }
  bool in_object() const { return closers_[depth_ - 1] == '}'; }
  bool push(char opener) {
    if (depth_ == kMaxJsonDepth) {
      return false;
    }
    closers_[depth_++] = opener == '{' ? '}' : ']';
    return true;
  }
  bool pop(char closer) { return closers_[--depth_] == closer; }

 private:
  std::array<char, kMaxJsonDepth> closers_;
  int depth_ = 0;
};

// From behind a value to the next one in the same or an outer bracket; sets
// `done` when the outermost is closed.
const char* to_next_value(const char* at,
                          const char* end,
                          Nesting& nesting,
                          bool& done) {
  while (!nesting.empty()) {
    at = skip_json_space(at, end);
    if (at == end) {
      return nullptr;
    }
    if (*at == ',') {
      at = skip_json_space(at + 1, end);
      return nesting.in_object() ? check_key(at, end) : at;
    }
    if ((*at != '}' && *at != ']') || !nesting.pop(*at)) {
      return nullptr;
    }
    ++at;
  }
  done = true;
  return at;
}

}  // namespace

const char* skip_json_space(const char* at, const char* end) {
  while (at < end &&
         (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) {
    ++at;
  }
  return at;
}

const char* check_json_string(const char* at, const char* end) {
  ++at;
  while (true) {
    at = skip_plain(at, end);
    if (at == end) {
      return nullptr;
    }
    if (*at == '"') {
      return at + 1;
    }
    if (*at == '\\') {
      at = check_escape(at, end);
      if (at == nullptr) {
        return nullptr;
      }
      continue;
    }
    // Of the bytes below 0x80 only control characters come here.
    const size_t bytes =
        utf8_sequence_bytes({at, static_cast<size_t>(end - at)});
    if (bytes < 2) {
      return nullptr;
    }
    at += bytes;
  }
}

const char* check_json_value(const char* at, const char* end) {
  Nesting nesting;
  while (true) {
    if (at == nullptr || at == end) {
      return nullptr;
    }
    if (*at == '{' || *at == '[') {
      const char closer = *at == '{' ? '}' : ']';
      if (!nesting.push(*at)) {
        return nullptr;
      }
      at = skip_json_space(at + 1, end);
      if (at == end) {
        return nullptr;
      }
      if (*at != closer) {
        at = closer == '}' ? check_key(at, end) : at;
        continue;
      }
      nesting.pop(closer);
      ++at;
    } else {
      at = check_scalar(at, end);
      if (at == nullptr) {
        return nullptr;
      }
    }
    bool done = false;
    at = to_next_value(at, end, nesting, done);
    if (done) {
      return at;
    }
  }
}

bool is_json(std::string_view text) {
  const char* end = text.data() + text.size();
  const char* at = check_json_value(skip_json_space(text.data(), end), end);
  return at != nullptr && skip_json_space(at, end) == end;
}

std::optional<int64_t> scan_json_int(const char*& at, const char* end) {
  const char* digits = at < end && *at == '-' ? at + 1 : at;
  if (digits == end || !is_digit(*digits)) {
    return std::nullopt;
  }
  int64_t value = 0;
  // Up to 18 digits always fit.
  const char* stop = end - digits > 18 ? digits + 18 : end;
  const char* plain = scan_digits(digits, end, value);
  for (; plain < stop && is_digit(*plain); ++plain) {
    value = value * 10 + (*plain - '0');
  }
  if (*digits != '0' && (plain == end || !is_digit(*plain))) {
    value = digits == at ? value : -value;
    at = plain;
    return value;
  }
  const auto [behind, problem] = std::from_chars(at, end, value);
  const bool zero_padded = *digits == '0' && behind - digits > 1;
  if (problem != std::errc() || zero_padded) {
    return std::nullopt;
  }
  at = behind;
  return value;
}

std::optional<int64_t> json_int(std::string_view text) {
  const char* at = text.data();
  const char* end = at + text.size();
  const std::optional<int64_t> value = scan_json_int(at, end);
  return at == end ? value : std::nullopt;
}

}  // namespace shp
