// The piece of a trace that the scanner looks at: a buffer over a ByteSource
// that knows its offset in the file.
//
// The bytes [at(), end()) are in memory; behind end() are kPadBytes zeros, so
// that 16 bytes may always be loaded. more() adds bytes and may move all of
// them: pointers into the window are void after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/trace/byte_source.h"
#include "cli/trace/structure_index.h"
#include "common/base/result.h"

namespace shp {

class Window {
 public:
  // Largest item that is looked at as a whole; what is longer is passed over.
  static constexpr size_t kMaxItemBytes = 16U << 20;
  static constexpr size_t kStartBytes = 256U << 10;
  static constexpr size_t kPadBytes = 64;

  explicit Window(ByteSource& source)
      : source_(source), buffer_(kStartBytes + kPadBytes) {}

  const char* at() const { return buffer_.data() + begin_; }
  const char* end() const { return buffer_.data() + end_; }
  size_t size() const { return end_ - begin_; }
  uint64_t offset() const { return offset_ + begin_; }
  uint64_t offset_of(const char* place) const {
    return offset_ + static_cast<uint64_t>(place - buffer_.data());
  }
  void move_to(const char* place) {
    begin_ = static_cast<size_t>(place - buffer_.data());
  }
  bool at_eof() const { return at_eof_; }
  // No room is left for an item that starts at at().
  bool is_full() const { return size() >= kMaxItemBytes; }

  // The quotes and brackets from at() to end(), where no string is open now; of
  // no use after more(). Built once between two calls of it: null when at() is
  // not one of its "{".
  const StructureIndex* index() {
    if (!indexed_) {
      indexed_ = true;
      index_.build(buffer_.data(), begin_, end_);
    }
    const uint64_t bit = uint64_t{1} << begin_ % StructureIndex::kBlockBytes;
    return (index_.at(begin_).opens & bit) != 0 ? &index_ : nullptr;
  }
  size_t place() const { return begin_; }

  // False at the end of the source.
  Result<bool> more() {
    make_room();
    indexed_ = false;
    const size_t room = buffer_.size() - kPadBytes - end_;
    Result<size_t> got = source_.read(buffer_.data() + end_, room);
    if (!got) {
      return tl::unexpected<Error>(got.error());
    }
    end_ += *got;
    std::char_traits<char>::assign(buffer_.data() + end_, kPadBytes, '\0');
    at_eof_ = *got == 0;
    return !at_eof_;
  }

 private:
  void make_room() {
    if (begin_ > 0) {
      std::char_traits<char>::move(buffer_.data(), at(), size());
      offset_ += begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ > (buffer_.size() - kPadBytes) / 2) {
      buffer_.resize((buffer_.size() - kPadBytes) * 2 + kPadBytes);
    }
  }

  ByteSource& source_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;  // of buffer_[0] in the trace
  bool at_eof_ = false;
  StructureIndex index_;
  bool indexed_ = false;
};

}  // namespace shp
