#include "common/jsonl/json_text.h"

#include <array>
#include <bitset>
#include <cstdint>

#include "common/base/utf8.h"

namespace shp {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

enum CharClass : uint8_t { kPlain, kQuote, kBackslash, kControl, kHigh };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  for (size_t i = 0; i < 256; ++i) {
    classes[i] = i < 0x20 ? kControl : i >= 0x80 ? kHigh : kPlain;
  }
  classes['"'] = kQuote;
  classes['\\'] = kBackslash;
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

uint8_t class_of(char c) {
  return kClasses[static_cast<unsigned char>(c)];
}

void append_control(char c, std::string* out) {
  switch (c) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '\b':
      *out += "\\b";
      return;
    case '\f':
      *out += "\\f";
      return;
    default:
      *out += "\\u00";
      *out += kHexDigits[static_cast<unsigned char>(c) >> 4];
      *out += kHexDigits[static_cast<unsigned char>(c) & 15];
  }
}

// One pass over an object: checks the grammar, and copies what lies between
// white space in runs as long as they come.
class ObjectCopier {
 public:
  ObjectCopier(std::string_view text, std::string* out)
      : at_(text.data()), end_(at_ + text.size()), run_(at_), out_(out) {}

  bool run() {
    skip_space();
    if (at_ == end_ || *at_ != '{') {
      return false;
    }
    if (!values()) {
      return false;
    }
    skip_space();
    copy_run();
    return at_ == end_;
  }

 private:
  // Containers that are open: a bit each, set for an object. A loop and not a
  // recursion, so that depth costs no stack.
  bool values() {
    bool expects_value = true;
    while (expects_value || depth_ > 0) {
      skip_space();
      if (at_ == end_) {
        return false;
      }
      if (expects_value) {
        if (!value(&expects_value)) {
          return false;
        }
      } else if (!after_value(&expects_value)) {
        return false;
      }
    }
    return true;
  }

  // Reads a scalar, or opens a container and its first key.
  bool value(bool* expects_value) {
    *expects_value = false;
    switch (*at_) {
      case '{':
        return open(true, '}', expects_value);
      case '[':
        return open(false, ']', expects_value);
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  bool open(bool object, char closer, bool* expects_value) {
    if (depth_ == kMaxArgsDepth) {
      return false;
    }
    take();
    skip_space();
    if (at_ != end_ && *at_ == closer) {
      take();
      return true;
    }
    is_object_[static_cast<size_t>(depth_++)] = object;
    *expects_value = true;
    return !object || key();
  }

  bool after_value(bool* expects_value) {
    const bool object = is_object_[static_cast<size_t>(depth_ - 1)];
    if (*at_ == (object ? '}' : ']')) {
      take();
      --depth_;
      return true;
    }
    if (*at_ != ',') {
      return false;
    }
    take();
    *expects_value = true;
    return !object || key();
  }

  bool key() {
    skip_space();
    if (at_ == end_ || *at_ != '"' || !string()) {
      return false;
    }
    skip_space();
    if (at_ == end_ || *at_ != ':') {
      return false;
    }
    take();
    return true;
  }

  bool string() {
    ++at_;
    while (at_ != end_) {
      switch (class_of(*at_)) {
        case kPlain:
          ++at_;
          break;
        case kQuote:
          ++at_;
          return true;
        case kBackslash:
          if (!escape()) {
            return false;
          }
          break;
        case kHigh: {
          const size_t bytes = utf8_sequence_bytes(left());
          if (bytes == 0) {
            return false;
          }
          at_ += bytes;
          break;
        }
        default:
          return false;
      }
    }
    return false;
  }

  bool escape() {
    ++at_;
    if (at_ == end_) {
      return false;
    }
    if (*at_ != 'u') {
      return std::string_view("\"\\/bfnrt").find(*at_++) !=
             std::string_view::npos;
    }
    ++at_;
    unsigned first = 0;
    if (!hex4(&first) || (first >= 0xdc00 && first <= 0xdfff)) {
      return false;
    }
    if (first < 0xd800 || first > 0xdbff) {
      return true;
    }
    unsigned second = 0;
    if (left().substr(0, 2) != "\\u") {
      return false;
    }
    at_ += 2;
    return hex4(&second) && second >= 0xdc00 && second <= 0xdfff;
  }

  bool hex4(unsigned* value) {
    if (end_ - at_ < 4) {
      return false;
    }
    for (int i = 0; i < 4; ++i, ++at_) {
      const char lower = static_cast<char>(*at_ | 0x20);
      const bool digit = *at_ >= '0' && *at_ <= '9';
      if (!digit && (lower < 'a' || lower > 'f')) {
        return false;
      }
      *value = *value * 16 +
               static_cast<unsigned>(digit ? *at_ - '0' : lower - 'a' + 10);
    }
    return true;
  }

  bool number() {
    if (*at_ == '-') {
      ++at_;
    }
    if (at_ != end_ && *at_ == '0') {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!digits()) {
        return false;
      }
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) {
        ++at_;
      }
      if (!digits()) {
        return false;
      }
    }
    return true;
  }

  bool digits() {
    const char* begin = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      ++at_;
    }
    return at_ != begin;
  }

  bool word(std::string_view expected) {
    if (left().substr(0, expected.size()) != expected) {
      return false;
    }
    at_ += expected.size();
    return true;
  }

  std::string_view left() const {
    return {at_, static_cast<size_t>(end_ - at_)};
  }
  void take() { ++at_; }
  static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
  }
  void skip_space() {
    if (at_ == end_ || !is_space(*at_)) {
      return;
    }
    copy_run();
    while (at_ != end_ && is_space(*at_)) {
      ++at_;
    }
    run_ = at_;
  }
  void copy_run() { out_->append(run_, static_cast<size_t>(at_ - run_)); }

  const char* at_;
  const char* end_;
  const char* run_;  // begins what is not copied yet
  std::string* out_;
  int depth_ = 0;
  std::bitset<kMaxArgsDepth> is_object_;
};

}  // namespace

void append_json_string(std::string_view text, std::string* out) {
  *out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && class_of(text[plain]) == kPlain) {
      ++plain;
    }
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) {
      break;
    }
    size_t taken = 1;
    switch (class_of(text[0])) {
      case kQuote:
        *out += "\\\"";
        break;
      case kBackslash:
        *out += "\\\\";
        break;
      case kControl:
        append_control(text[0], out);
        break;
      default:
        taken = utf8_sequence_bytes(text);
        out->append(taken != 0 ? text.substr(0, taken) : "\xef\xbf\xbd");
        taken = taken != 0 ? taken : 1;
    }
    text.remove_prefix(taken);
  }
  *out += '"';
}

bool append_json_object(std::string_view text, std::string* out) {
  const size_t before = out->size();
  if (ObjectCopier(text, out).run()) {
    return true;
  }
  out->resize(before);
  return false;
}

}  // namespace shp
