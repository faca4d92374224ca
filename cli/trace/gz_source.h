// A gzip file as a ByteSource: inflates all its members one after the other,
// checks each one's CRC and length, and remembers where deflate blocks begin,
// so that a splice can keep the compressed bytes before one of them.
//
// For scan.* and splice.*; one source belongs to one thread. Not trusted: a cut
// off or damaged file is an Error that names the byte of the compressed file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/trace/byte_source.h"
#include "cli/trace/deflate_decoder.h"

namespace shp {

// A place where a deflate block begins, or a member's first one.
struct BlockStart {
  uint64_t out_offset = 0;     // inflated bytes before it, of all members
  uint64_t member_offset = 0;  // inflated bytes before its member
  uint64_t in_bits = 0;        // bits of the file before it
  uint32_t crc = 0;            // of its member's inflated bytes before it
  std::string window;          // the last inflated bytes before it, <= 32 KiB
};

class GzSource : public ByteSource {
 public:
  // `fd` stays the caller's.
  explicit GzSource(int fd);
  // Goes on where `start` of the same file is.
  GzSource(int fd, const BlockStart& start);

  Result<size_t> read(char* into, size_t size) override;

  // Lets go of all block starts but the last one at or before `offset` and
  // those behind it.
  void settle(uint64_t offset) override;

  // The last block start at or before `offset`, which must not be less than
  // what settle() was told last.
  const BlockStart* last_start_before(uint64_t offset) const;

 private:
  // A crafted file may hold a million empty blocks.
  static constexpr size_t kMaxStarts = 256;
  static constexpr size_t kInputBytes = 128U << 10;

  Status fill();
  Status begin_member();
  Status skip_header_fields(int flags);
  Status end_member();
  Status decode_some();
  void take_decoded();
  void note_block_start(unsigned unused_bits);
  Result<int> next_byte();
  Status skip_bytes(uint64_t count);
  Status skip_text();
  uint64_t in_offset() const {
    return in_base_ - static_cast<uint64_t>(in_.end - in_.next);
  }
  tl::unexpected<Error> fail(const char* what) const;

  int fd_;
  DeflateDecoder decoder_;
  std::string_view ready_;  // decoded, in the decoder's buffer
  std::vector<uint8_t> input_;
  DeflateInput in_;
  uint64_t in_base_ = 0;  // file offset of in_.end
  bool in_member_ = false;
  bool first_member_ = true;
  bool at_end_ = false;
  uint64_t out_ = 0;  // decoded bytes, those in ready_ too
  uint64_t member_offset_ = 0;
  uint32_t crc_ = 0;
  std::vector<BlockStart> starts_;
};

// True when the file begins as a gzip file does.
bool is_gzip(int fd);

}  // namespace shp
