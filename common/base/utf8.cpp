#include "common/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace shp {
namespace {

bool is_tail(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

bool all_tails(std::string_view tails) {
  for (const char c : tails) {
    if (!is_tail(c)) {
      return false;
    }
  }
  return true;
}

// The first tail byte of these leads is narrower than 80..BF, or the sequence
// would be overlong, a surrogate or past U+10FFFF (RFC 3629, section 4).
bool first_tail_fits(unsigned lead, unsigned tail) {
  switch (lead) {
    case 0xe0:
      return tail >= 0xa0;
    case 0xed:
      return tail <= 0x9f;
    case 0xf0:
      return tail >= 0x90;
    case 0xf4:
      return tail <= 0x8f;
    default:
      return true;
  }
}

}  // namespace

size_t utf8_sequence_bytes(std::string_view text) noexcept {
  const unsigned lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) {
    return 1;
  }
  const size_t bytes = lead < 0xc2   ? 0
                       : lead < 0xe0 ? 2
                       : lead < 0xf0 ? 3
                       : lead < 0xf5 ? 4
                                     : 0;
  if (bytes == 0 || text.size() < bytes ||
      !all_tails(text.substr(1, bytes - 1)) ||
      !first_tail_fits(lead, static_cast<unsigned char>(text[1]))) {
    return 0;
  }
  return bytes;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    uint64_t word = 0;
    if (text.size() >= sizeof(word)) {
      std::memcpy(&word, text.data(), sizeof(word));
      if ((word & 0x8080'8080'8080'8080U) == 0) {
        text.remove_prefix(sizeof(word));
        continue;
      }
    }
    const size_t bytes = utf8_sequence_bytes(text);
    if (bytes == 0) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace shp
