#include "preload/args_json.h"

#include <stdio.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace shp::recorder {
namespace {

// Appends until the buffer is full; then `failed` sticks.
class Writer {
 public:
  explicit Writer(std::span<char> buffer)
      : at_(buffer.data()), end_(buffer.data() + buffer.size()) {}

  void put(char c) {
    if (at_ == end_) {
      failed_ = true;
      return;
    }
    *at_++ = c;
  }
  void put(std::string_view text) {
    if (static_cast<size_t>(end_ - at_) < text.size()) {
      failed_ = true;
      return;
    }
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void integer(int64_t value) {
    const auto [end, problem] = std::to_chars(at_, end_, value);
    if (problem != std::errc()) {
      failed_ = true;
      return;
    }
    at_ = end;
  }
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  const char* at() const { return at_; }

 private:
  char* at_;
  char* end_;
  bool failed_ = false;
};

void put_escape(Writer& out, unsigned char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  out.put("\\u00");
  out.put(kHex[c >> 4]);
  out.put(kHex[c & 15]);
}

void put_string(Writer& out, const char* text) {
  if (text == nullptr) {
    out.put("null");
    return;
  }
  out.put('"');
  for (; *text != '\0'; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') {
      out.put('\\');
      out.put(*text);
    } else if (c < 0x20) {
      put_escape(out, c);
    } else {
      out.put(*text);
    }
  }
  out.put('"');
}

// The shortest of 15 to 17 digits that reads back as the same number. Not
// std::to_chars: its floating-point half would pull libm and 60 KiB of tables
// into every process that is recorded.
void put_double(Writer& out, double value) {
  char text[40];
  for (int digits = 15; digits <= 17; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) {
      break;
    }
  }
  for (char* at = text; *at != '\0'; ++at) {
    if (*at == ',') {
      *at = '.';  // the program's locale
    }
  }
  out.put(std::string_view(text));
}

void put_value(Writer& out, const shp_arg& arg) {
  switch (arg.type) {
    case SHP_I64:
      out.integer(arg.value.i64);
      return;
    case SHP_F64:
      if (std::isfinite(arg.value.f64)) {
        put_double(out, arg.value.f64);
      } else {
        out.fail();
      }
      return;
    case SHP_BOOL:
      out.put(arg.value.boolean != 0 ? std::string_view("true")
                                     : std::string_view("false"));
      return;
    case SHP_STR:
      put_string(out, arg.value.str);
      return;
  }
  out.fail();
}

}  // namespace

std::string_view encode_args(std::span<const shp_arg> args,
                             std::span<char> buffer) noexcept {
  Writer out(buffer);
  char separator = '{';
  for (const shp_arg& arg : args) {
    if (arg.key == nullptr) {
      return {};
    }
    out.put(separator);
    put_string(out, arg.key);
    out.put(':');
    put_value(out, arg);
    separator = ',';
  }
  if (args.empty()) {
    out.put('{');
  }
  out.put('}');
  return out.failed()
             ? std::string_view()
             : std::string_view(buffer.data(),
                                static_cast<size_t>(out.at() - buffer.data()));
}

}  // namespace shp::recorder
