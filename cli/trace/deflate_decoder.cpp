#include "cli/trace/deflate_decoder.h"

#include <algorithm>
#include <cstring>

#include "cli/trace/deflate_bits.h"
#include "cli/trace/huffman_table.h"

namespace shp {
namespace {

// A dynamic block's header: 14 bits, 19 * 3, and 320 lengths of 14 bits at
// most.
constexpr size_t kMaxHeaderBytes = 640;

// Copies `length` bytes from `distance` back; may write 16 bytes more.
uint8_t* copy_match(uint8_t* to, size_t distance, size_t length) {
  const uint8_t* from = to - distance;
  uint8_t* end = to + length;
  if (distance >= 16) {
    do {
      std::memcpy(to, from, 16);
      to += 16;
      from += 16;
    } while (to < end);
  } else if (distance >= 8) {
    do {
      std::memcpy(to, from, 8);
      to += 8;
      from += 8;
    } while (to < end);
  } else if (distance == 1) {
    std::memset(to, *from, length);
  } else {
    while (to < end) {
      *to++ = *from++;
    }
  }
  return end;
}

}  // namespace

DeflateDecoder::DeflateDecoder() : out_(kWindowBytes + kOutBytes + kSlop) {}

void DeflateDecoder::reset() {
  reset(0, 0, {});
}

void DeflateDecoder::reset(unsigned bits,
                           unsigned value,
                           std::string_view history) {
  state_ = State::kHeader;
  final_ = false;
  bits_ = value;
  bit_count_ = bits;
  stored_left_ = 0;
  // What was not taken yet stays in front.
  const size_t waiting = at_ - taken_;
  std::memmove(out_.data(), out_.data() + taken_, waiting);
  std::copy(history.begin(), history.end(), out_.data() + waiting);
  taken_ = history.empty() ? 0 : waiting + history.size();
  begin_ = waiting;
  at_ = waiting + history.size();
}

std::string_view DeflateDecoder::take() {
  const std::string_view out(
      reinterpret_cast<const char*>(out_.data()) + taken_, at_ - taken_);
  taken_ = at_;
  return out;
}

std::string_view DeflateDecoder::window() const {
  const size_t bytes = std::min(at_ - begin_, kWindowBytes);
  return {reinterpret_cast<const char*>(out_.data()) + at_ - bytes, bytes};
}

// False when the buffer is full of what was not taken yet.
bool DeflateDecoder::make_room() {
  const bool full = at_ >= kWindowBytes + kOutBytes;
  if (full && taken_ == at_) {
    slide();
    return true;
  }
  return !full;
}

// Keeps the window, and what was not taken, at the front of the buffer.
void DeflateDecoder::slide() {
  const size_t keep =
      std::max(std::min(at_ - begin_, kWindowBytes), at_ - taken_);
  const size_t by = at_ - keep;
  std::memmove(out_.data(), out_.data() + by, keep);
  begin_ = begin_ > by ? begin_ - by : 0;
  taken_ -= by;
  at_ = keep;
}

// Gives whole bytes that were read ahead back to the input.
void DeflateDecoder::unread(DeflateInput& in) {
  in.next -= bit_count_ >> 3;
  bit_count_ &= 7;
  bits_ &= (1ULL << bit_count_) - 1;
}

bool DeflateDecoder::has(const DeflateInput& in, size_t bytes) const {
  return in.last || in.next + bytes <= in.end;
}

bool DeflateDecoder::overran(const DeflateInput& in) const {
  return in.next - (bit_count_ >> 3) > in.end;
}

DeflateDecoder::Stop DeflateDecoder::run(DeflateInput& in) {
  while (true) {
    Stop stop = Stop::kBlockEnd;
    switch (state_) {
      case State::kHeader:
        if (final_) {
          unread(in);
          bits_ = bit_count_ = 0;
          return Stop::kStreamEnd;
        }
        if (!has(in, kMaxHeaderBytes)) {
          return Stop::kInput;
        }
        if (!read_header(in)) {
          return overran(in) ? Stop::kInput : Stop::kBad;
        }
        continue;
      case State::kStored:
        stop = copy_stored(in);
        break;
      case State::kCodes:
        stop = decode(in);
        break;
    }
    if (stop != Stop::kBlockEnd) {
      return stop;
    }
    state_ = State::kHeader;
    unread(in);
    if (!final_) {
      return Stop::kBlockEnd;
    }
  }
}

DeflateDecoder::Stop DeflateDecoder::copy_stored(DeflateInput& in) {
  while (stored_left_ > 0) {
    if (!make_room()) {
      return Stop::kOutput;
    }
    if (in.next >= in.end) {
      return Stop::kInput;
    }
    const size_t some = std::min({stored_left_,
                                  static_cast<size_t>(in.end - in.next),
                                  kWindowBytes + kOutBytes - at_});
    std::memcpy(out_.data() + at_, in.next, some);
    in.next += some;
    at_ += some;
    stored_left_ -= some;
  }
  return Stop::kBlockEnd;
}

DeflateDecoder::Stop DeflateDecoder::decode(DeflateInput& in) {
  if (!make_room()) {
    return Stop::kOutput;
  }
  BitCursor cursor{in.next, bits_, bit_count_};
  uint8_t* out = out_.data() + at_;
  const Stop stop = decode_codes(in, cursor, out);
  in.next = cursor.next;
  bits_ = cursor.bits;
  bit_count_ = cursor.count;
  at_ = static_cast<size_t>(out - out_.data());
  if (stop == Stop::kOutput) {  // or the input's end
    return overran(in) || at_ < kWindowBytes + kOutBytes ? Stop::kInput
                                                         : Stop::kOutput;
  }
  return overran(in) ? Stop::kInput : stop;
}

// Until the block, the input or the room ends. What it works on is copied, so
// that it stays in registers while bytes are stored.
DeflateDecoder::Stop DeflateDecoder::decode_codes(const DeflateInput& in,
                                                  BitCursor& state,
                                                  uint8_t*& end) const {
  BitCursor cursor = state;
  uint8_t* out = end;
  // A step reads 8 bytes at most thrice, and what was read ahead may lie behind
  // the end once nothing more comes.
  const uint8_t* safe_in = in.last ? in.end + 16 : in.end - 32;
  const uint8_t* safe_out = out_.data() + kWindowBytes + kOutBytes;
  const uint8_t* oldest = out_.data() + begin_;
  const uint32_t* lits = lit_table_.data();
  const uint32_t* dists = dist_table_.data();
  Stop stop = Stop::kOutput;
  while (cursor.next <= safe_in && out < safe_out) {
    cursor.refill();
    uint32_t entry = lits[cursor.peek(kLitBits)];
    // Of 56 bits, three literals take 33 at most.
    for (int i = 0; i < 3 && (entry & kEntryLiteral) != 0; ++i) {
      cursor.drop(entry_bits(entry));
      *out++ = static_cast<uint8_t>(entry >> 16);
      entry = lits[cursor.peek(kLitBits)];
    }
    if ((entry & kEntryLiteral) != 0) {
      continue;
    }
    cursor.refill();
    entry = cursor.resolve(lits, entry, kLitBits);
    cursor.drop(entry_bits(entry));
    if ((entry & kEntryLiteral) != 0) {
      *out++ = static_cast<uint8_t>(entry >> 16);
      continue;
    }
    if ((entry & kEntrySpecial) != 0) {
      stop = (entry & kEntryEnd) != 0 ? Stop::kBlockEnd : Stop::kBad;
      break;
    }
    const size_t length = entry_value(entry) + cursor.take(entry_extra(entry));
    const uint32_t far =
        cursor.resolve(dists, dists[cursor.peek(kDistBits)], kDistBits);
    cursor.drop(entry_bits(far));
    const size_t distance = entry_value(far) + cursor.take(entry_extra(far));
    if ((far & kEntrySpecial) != 0 ||
        distance > static_cast<size_t>(out - oldest)) {
      stop = Stop::kBad;
      break;
    }
    out = copy_match(out, distance, length);
  }
  state = cursor;
  end = out;
  return stop;
}

}  // namespace shp
