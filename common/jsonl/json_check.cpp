#include "common/jsonl/json_check.h"

#include <array>
#include <charconv>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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

// Length of the valid UTF-8 sequence that starts with a byte >= 0x80; 0 if it
// is none (overlong, surrogate, beyond U+10FFFF, cut off).
int utf8_length(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<unsigned char>(at[i]); };
  const auto tail = [&](int i) { return (byte(i) & 0xc0) == 0x80; };
  const auto left = end - at;
  if (byte(0) >= 0xc2 && byte(0) <= 0xdf) {
    return left >= 2 && tail(1) ? 2 : 0;
  }
  if (byte(0) >= 0xe0 && byte(0) <= 0xef) {
    const bool fits = left >= 3 && tail(1) && tail(2) &&
                      (byte(0) != 0xe0 || byte(1) >= 0xa0) &&
                      (byte(0) != 0xed || byte(1) < 0xa0);
    return fits ? 3 : 0;
  }
  if (byte(0) >= 0xf0 && byte(0) <= 0xf4) {
    const bool fits = left >= 4 && tail(1) && tail(2) && tail(3) &&
                      (byte(0) != 0xf0 || byte(1) >= 0x90) &&
                      (byte(0) != 0xf4 || byte(1) < 0x90);
    return fits ? 4 : 0;
  }
  return 0;
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
    const int length = utf8_length(at, end);
    if (length == 0) {
      return nullptr;
    }
    at += length;
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

namespace {

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

bool is_high(int unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}
bool is_low(int unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

// `at` is at the "u" of an escape; returns the position behind it, or behind
// the second escape of a surrogate pair.
const char* append_unicode_escape(std::string& out,
                                  const char* at,
                                  const char* end) {
  const int unit = hex4(at + 1, end);
  at += 5;
  if (is_high(unit) && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
    const int low = hex4(at + 2, end);
    if (is_low(low)) {
      append_utf8(out,
                  0x10000U + (static_cast<uint32_t>(unit - 0xd800) << 10) +
                      static_cast<uint32_t>(low - 0xdc00));
      return at + 6;
    }
  }
  const bool lone = is_high(unit) || is_low(unit);
  append_utf8(out, lone ? 0xfffdU : static_cast<uint32_t>(unit));
  return at;
}

}  // namespace

std::string json_unescape(std::string_view quoted) {
  const char* at = quoted.data() + 1;
  const char* end = quoted.data() + quoted.size() - 1;
  std::string out;
  while (at < end) {
    if (*at != '\\') {
      out += *at++;
      continue;
    }
    ++at;
    if (*at == 'u') {
      at = append_unicode_escape(out, at, end);
      continue;
    }
    static constexpr std::string_view kFrom = "bfnrt";
    static constexpr std::string_view kTo = "\b\f\n\r\t";
    const size_t index = kFrom.find(*at);
    out += index == std::string_view::npos ? *at : kTo[index];
    ++at;
  }
  return out;
}

std::string json_quote(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  const char* end = text.data() + text.size();
  std::string out = "\"";
  for (const char* at = text.data(); at < end;) {
    const unsigned char byte = static_cast<unsigned char>(*at);
    if (byte >= 0x80) {
      const int length = utf8_length(at, end);
      out.append(length > 0 ? std::string_view(at, static_cast<size_t>(length))
                            : std::string_view("\xef\xbf\xbd"));
      at += length > 0 ? length : 1;
      continue;
    }
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += *at;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += *at;
    }
    ++at;
  }
  return out + "\"";
}

void for_each_member(std::string_view object, const JsonMember& member) {
  const char* end = object.data() + object.size();
  const char* at = skip_json_space(object.data(), end);
  at = skip_json_space(at + 1, end);
  while (at < end && *at != '}') {
    const char* key_end = check_json_string(at, end);
    const std::string_view key(at, static_cast<size_t>(key_end - at));
    at = skip_json_space(key_end, end);
    at = skip_json_space(at + 1, end);
    const char* value_end = check_json_value(at, end);
    const std::string_view value(at, static_cast<size_t>(value_end - at));
    if (!member(json_unescape(key), value)) {
      return;
    }
    at = skip_json_space(value_end, end);
    if (*at == ',') {
      at = skip_json_space(at + 1, end);
    }
  }
}

}  // namespace shp
