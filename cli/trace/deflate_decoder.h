// A deflate decoder (RFC 1951) that works in pieces and stops at every block:
// what zlib's inflate() with Z_BLOCK does, at several times its speed. Decodes
// into a buffer of its own that keeps the last 32 KiB.
//
// For gz_source.*; one object belongs to one thread. Input is not trusted; what
// zlib refuses is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shp {

// Compressed bytes. kInputPad bytes behind `end` can be read, whatever they
// are.
struct DeflateInput {
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;
  bool last = false;  // nothing comes behind `end`
};
inline constexpr size_t kInputPad = 64;

struct BitCursor;

class DeflateDecoder {
 public:
  static constexpr size_t kWindowBytes = 32768;

  enum class Stop {
    kInput,      // more input is needed, or it is cut off when it was the last
    kOutput,     // the buffer is full: take() it
    kBlockEnd,   // behind a block that is not the last
    kStreamEnd,  // behind the last one, at a whole byte of input
    kBad,        // not deflate
  };

  DeflateDecoder();

  // Starts a stream whose first block begins at the input's next bit.
  void reset();
  // The same in the middle of one: `bits` of the byte before are still to come,
  // and `history` is what was decoded before.
  void reset(unsigned bits, unsigned value, std::string_view history);

  Stop run(DeflateInput& in);

  // What was decoded and not taken yet; the whole of it is taken.
  std::string_view take();
  // The last bytes that were decoded, up to kWindowBytes.
  std::string_view window() const;
  // Bits of the bytes before in.next that were not used yet, less than 8 after
  // kBlockEnd and 0 after kStreamEnd.
  unsigned unused_bits() const { return bit_count_; }

 private:
  static constexpr size_t kOutBytes = 256U << 10;
  static constexpr size_t kSlop = 320;  // a match and a copy's overshoot
  static constexpr unsigned kLitBits = 11;
  static constexpr unsigned kDistBits = 8;

  enum class State { kHeader, kStored, kCodes };

  void refill(DeflateInput& in);
  unsigned take_bits(unsigned count);
  void unread(DeflateInput& in);
  bool has(const DeflateInput& in, size_t bytes) const;
  bool overran(const DeflateInput& in) const;
  bool read_header(DeflateInput& in);
  bool read_stored(DeflateInput& in);
  bool read_dynamic(DeflateInput& in);
  bool read_lengths(DeflateInput& in, uint8_t* lengths, size_t count);
  void use_fixed();
  Stop copy_stored(DeflateInput& in);
  Stop decode(DeflateInput& in);
  Stop decode_codes(const DeflateInput& in,
                    BitCursor& state,
                    uint8_t*& end) const;
  bool make_room();
  void slide();

  State state_ = State::kHeader;
  bool final_ = false;
  uint64_t bits_ = 0;
  unsigned bit_count_ = 0;
  size_t stored_left_ = 0;
  std::vector<uint32_t> lit_table_;
  std::vector<uint32_t> dist_table_;
  std::vector<uint32_t> length_table_;
  std::vector<uint8_t> out_;
  size_t begin_ = 0;  // of the history in out_
  size_t taken_ = 0;
  size_t at_ = 0;
};

}  // namespace shp
