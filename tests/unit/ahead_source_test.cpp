// A source read on another thread: the same bytes, its error where it comes.

#include "cli/trace/ahead_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

using namespace shp;

namespace {

class TextSource : public ByteSource {
 public:
  TextSource(std::string_view text, size_t step, bool broken)
      : text_(text), step_(step), broken_(broken) {}
  Result<size_t> read(char* into, size_t size) override {
    if (text_.empty() && broken_) {
      return error("byte 7: odd");
    }
    const size_t some = std::min({size, step_, text_.size()});
    std::memcpy(into, text_.data(), some);
    text_.remove_prefix(some);
    return some;
  }
  void settle(uint64_t offset) override { settled = offset; }

  uint64_t settled = 0;

 private:
  std::string_view text_;
  size_t step_;
  bool broken_;
};

std::string all_of(ByteSource& source, size_t size) {
  std::string out;
  std::string some(size, '\0');
  while (true) {
    const Result<size_t> got = source.read(some.data(), size);
    if (!got) {
      return out + got.error().message;
    }
    if (*got == 0) {
      CHECK(source.read(some.data(), size).value() == 0);
      return out;
    }
    out.append(some, 0, *got);
    source.settle(out.size());
  }
}

}  // namespace

TEST_CASE("bytes come in order and end where the source does") {
  std::string text;
  while (text.size() < 3'000'000) {
    text += std::to_string(text.size());
  }
  for (const bool broken : {false, true}) {
    for (const size_t step : {size_t{999}, size_t{1} << 20}) {
      for (const size_t size : {size_t{777}, size_t{300'000}}) {
        TextSource behind(text, step, broken);
        AheadSource ahead(behind);
        CHECK(all_of(ahead, size) == text + (broken ? "byte 7: odd" : ""));
        CHECK(behind.settled <= text.size());
      }
    }
  }
}

TEST_CASE("a reader that stops early leaves no thread") {
  const std::string text(10'000'000, 'x');
  TextSource behind(text, 4096, false);
  AheadSource ahead(behind);
  char some[10];
  CHECK(ahead.read(some, sizeof(some)).value() == 10);
}
