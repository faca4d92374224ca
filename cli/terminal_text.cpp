#include "cli/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace shp {
namespace {

constexpr std::string_view kEllipsis = "...";

unsigned char byte_at(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// How many bytes the control character has that is at `at`, 0 for none. C1 is
// two bytes of UTF-8.
size_t control_bytes(std::string_view text, size_t at) {
  const unsigned char byte = byte_at(text, at);
  const unsigned char next = byte_at(text, at + 1);
  if (byte < 0x20 || byte == 0x7f) {
    return 1;
  }
  return byte == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

}  // namespace

std::string for_terminal(std::string_view text, size_t width) {
  std::string safe;
  for (size_t at = 0; at < text.size();) {
    const size_t control = control_bytes(text, at);
    safe += control > 0 ? '?' : text[at];
    at += control > 0 ? control : 1;
  }
  if (width == 0 || safe.size() <= width) {
    return safe;
  }
  size_t end = width - std::min(width, kEllipsis.size());
  while (end > 0 && (byte_at(safe, end) & 0xc0U) == 0x80) {
    --end;
  }
  return safe.substr(0, end) + std::string(kEllipsis.substr(0, width));
}

void say_error(std::string_view verb, std::string_view message) {
  fmt::print(stderr, "shp {}: {}\n", verb, for_terminal(message));
}

}  // namespace shp
