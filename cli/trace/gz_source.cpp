#include "cli/trace/gz_source.h"

#include <algorithm>
#include <cstring>

#include "cli/trace/crc.h"

namespace shp {
namespace {

// Flags of a gzip header, RFC 1952.
enum : int { kHeaderCrc = 2, kExtra = 4, kName = 8, kComment = 16 };

}  // namespace

GzSource::GzSource(int fd) : fd_(fd), input_(kInputBytes + kInputPad) {
  in_.next = in_.end = input_.data();
}

GzSource::GzSource(int fd, const BlockStart& start) : GzSource(fd) {
  in_base_ = start.in_bits / 8;
  out_ = start.out_offset;
  member_offset_ = start.member_offset;
  crc_ = start.crc;
  in_member_ = true;
  first_member_ = false;
  const auto gone = static_cast<unsigned>(start.in_bits % 8);
  const auto byte = gone > 0 ? next_byte().value_or(0) : 0;
  decoder_.reset(
      (8 - gone) % 8, static_cast<unsigned>(byte) >> gone, start.window);
}

tl::unexpected<Error> GzSource::fail(const char* what) const {
  return error("compressed byte " + std::to_string(in_offset()) + ": " + what);
}

// Puts more behind what is left of the input. What the decoder read ahead stays
// in front, since it gives whole bytes of that back at the end of a block.
Status GzSource::fill() {
  const size_t used = static_cast<size_t>(in_.next - input_.data());
  const size_t back = std::min<size_t>(used, sizeof(uint64_t));
  const size_t left = back + static_cast<size_t>(in_.end - in_.next);
  std::memmove(input_.data(), in_.next - back, left);
  const Result<size_t> got =
      read_at(fd_,
              reinterpret_cast<char*>(input_.data()) + left,
              kInputBytes - left,
              in_base_);
  if (!got) {
    return tl::unexpected<Error>(got.error());
  }
  in_base_ += *got;
  in_.next = input_.data() + back;
  in_.end = input_.data() + left + *got;
  in_.last = left + *got < kInputBytes;
  return {};
}

// -1 at the end of the file.
Result<int> GzSource::next_byte() {
  if (in_.next == in_.end) {
    const Status filled = fill();
    if (!filled) {
      return tl::unexpected<Error>(filled.error());
    }
  }
  return in_.next == in_.end ? -1 : *in_.next++;
}

Status GzSource::skip_bytes(uint64_t count) {
  for (; count > 0; --count) {
    const Result<int> byte = next_byte();
    if (!byte) {
      return tl::unexpected<Error>(byte.error());
    }
    if (*byte < 0) {
      return fail("gzip file is cut off in a header");
    }
  }
  return {};
}

Status GzSource::skip_text() {
  while (true) {
    const Result<int> byte = next_byte();
    if (!byte) {
      return tl::unexpected<Error>(byte.error());
    }
    if (*byte < 0) {
      return fail("gzip file is cut off in a header");
    }
    if (*byte == 0) {
      return {};
    }
  }
}

// At the end of the file, or where only zeros follow (tape padding, which gzip
// takes too), sets at_end_.
Status GzSource::begin_member() {
  int header[10] = {};
  for (int& byte : header) {
    const Result<int> got = next_byte();
    if (!got) {
      return tl::unexpected<Error>(got.error());
    }
    byte = *got;
    const bool padding = byte <= 0 && &byte == header && !first_member_;
    if (padding) {
      at_end_ = true;
      return {};
    }
    if (byte < 0) {
      return fail("gzip file is cut off in a header");
    }
  }
  if (header[0] != 0x1f || header[1] != 0x8b || header[2] != 8) {
    return fail("is not a gzip member");
  }
  const Status skipped = skip_header_fields(header[3]);
  if (!skipped) {
    return skipped;
  }
  decoder_.reset();
  in_member_ = true;
  first_member_ = false;
  member_offset_ = out_;
  crc_ = 0;
  note_block_start(0);
  return {};
}

Status GzSource::skip_header_fields(int flags) {
  Status skipped;
  if ((flags & kExtra) != 0) {
    const int low = next_byte().value_or(-1);
    const int high = next_byte().value_or(-1);
    skipped = low < 0 || high < 0
                  ? fail("gzip file is cut off in a header")
                  : skip_bytes(static_cast<uint64_t>(low | high << 8));
  }
  if (skipped && (flags & kName) != 0) {
    skipped = skip_text();
  }
  if (skipped && (flags & kComment) != 0) {
    skipped = skip_text();
  }
  if (skipped && (flags & kHeaderCrc) != 0) {
    skipped = skip_bytes(2);
  }
  return skipped;
}

Status GzSource::end_member() {
  uint64_t trailer = 0;
  for (int i = 0; i < 8; ++i) {
    const Result<int> byte = next_byte();
    if (!byte) {
      return tl::unexpected<Error>(byte.error());
    }
    if (*byte < 0) {
      return fail("gzip file is cut off");
    }
    trailer |= static_cast<uint64_t>(*byte) << (8 * i);
  }
  if (static_cast<uint32_t>(trailer) != crc_) {
    return fail("gzip data is damaged (CRC does not match)");
  }
  if (trailer >> 32 != ((out_ - member_offset_) & 0xffff'ffff)) {
    return fail("gzip data is damaged (length does not match)");
  }
  in_member_ = false;
  return {};
}

// `unused_bits` of the last byte that was read belong to the block.
void GzSource::note_block_start(unsigned unused_bits) {
  if (!starts_.empty() && starts_.back().out_offset == out_) {
    starts_.pop_back();
  }
  if (starts_.size() == kMaxStarts) {
    starts_.erase(starts_.begin() + kMaxStarts / 2);
  }
  BlockStart start{
      out_, member_offset_, in_offset() * 8 - unused_bits, crc_, {}};
  start.window = decoder_.window();
  starts_.push_back(std::move(start));
}

void GzSource::take_decoded() {
  ready_ = decoder_.take();
  crc_ = add_crc(crc_, ready_);
  out_ += ready_.size();
}

// Until a block ends or the decoder's buffer is full.
Status GzSource::decode_some() {
  switch (decoder_.run(in_)) {
    case DeflateDecoder::Stop::kInput:
      if (in_.last) {
        in_.next = in_.end;
        return fail("gzip file is cut off");
      }
      return fill();
    case DeflateDecoder::Stop::kOutput:
      take_decoded();
      return {};
    case DeflateDecoder::Stop::kBlockEnd:
      take_decoded();
      note_block_start(decoder_.unused_bits());
      return {};
    case DeflateDecoder::Stop::kStreamEnd:
      take_decoded();
      return end_member();
    case DeflateDecoder::Stop::kBad:
      break;
  }
  return fail("gzip data is damaged");
}

Result<size_t> GzSource::read(char* into, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (!ready_.empty()) {
      const size_t some = std::min(size - done, ready_.size());
      std::memcpy(into + done, ready_.data(), some);
      ready_.remove_prefix(some);
      done += some;
      continue;
    }
    if (at_end_) {
      break;
    }
    const Status state = in_member_ ? decode_some() : begin_member();
    if (!state) {
      return tl::unexpected<Error>(state.error());
    }
  }
  return done;
}

void GzSource::settle(uint64_t offset) {
  const auto behind = std::upper_bound(
      starts_.begin(),
      starts_.end(),
      offset,
      [](uint64_t value, const BlockStart& s) { return value < s.out_offset; });
  if (behind != starts_.begin()) {
    starts_.erase(starts_.begin(), std::prev(behind));
  }
}

const BlockStart* GzSource::last_start_before(uint64_t offset) const {
  const BlockStart* best = nullptr;
  for (const BlockStart& start : starts_) {
    best = start.out_offset <= offset ? &start : best;
  }
  return best;
}

bool is_gzip(int fd) {
  char magic[2] = {};
  const Result<size_t> got = read_at(fd, magic, 2, 0);
  return got && *got == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';
}

}  // namespace shp
