// The decoding half of json_check.h: strings and the members of objects, of
// texts that were checked before.
#include <charconv>

#include "common/base/utf8.h"
#include "common/jsonl/json_check.h"

namespace shp {
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

// The number that four hexadecimal digits, checked before, stand for.
int hex4(const char* at) {
  int value = 0;
  std::from_chars(at, at + 4, value, 16);
  return value;
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
  const int unit = hex4(at + 1);
  at += 5;
  if (is_high(unit) && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
    const int low = hex4(at + 2);
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
      const size_t bytes =
          utf8_sequence_bytes({at, static_cast<size_t>(end - at)});
      out.append(bytes > 0 ? std::string_view(at, bytes)
                           : std::string_view("\xef\xbf\xbd"));
      at += bytes > 0 ? bytes : 1;
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
