#include "cli/trace/gz_source.h"

#include <algorithm>

#include "common/base/check.h"

namespace shp {
namespace {

constexpr unsigned kWindowBytes = 32768;

// Flags of a gzip header, RFC 1952.
enum : int { kHeaderCrc = 2, kExtra = 4, kName = 8, kComment = 16 };

}  // namespace

GzSource::GzSource(int fd) : fd_(fd), input_(kInputBytes) {
  SHP_CHECK(inflateInit2(&stream_, -MAX_WBITS) == Z_OK);
}

GzSource::GzSource(int fd, const BlockStart& start) : GzSource(fd) {
  in_base_ = start.in_bits / 8;
  out_ = start.out_offset;
  member_offset_ = start.member_offset;
  crc_ = start.crc;
  in_member_ = true;
  first_member_ = false;
  const int bits_gone = static_cast<int>(start.in_bits % 8);
  if (bits_gone > 0) {
    const int byte = next_byte().value_or(0);
    inflatePrime(&stream_, 8 - bits_gone, byte >> bits_gone);
  }
  inflateSetDictionary(&stream_,
                       reinterpret_cast<const Bytef*>(start.window.data()),
                       static_cast<unsigned>(start.window.size()));
}

GzSource::~GzSource() {
  inflateEnd(&stream_);
}

tl::unexpected<Error> GzSource::fail(const char* what) const {
  return error("compressed byte " + std::to_string(in_offset()) + ": " + what);
}

// Afterwards avail_in is 0 only at the end of the file.
Status GzSource::fill() {
  if (stream_.avail_in > 0) {
    return {};
  }
  const Result<size_t> got = read_at(
      fd_, reinterpret_cast<char*>(input_.data()), input_.size(), in_base_);
  if (!got) {
    return tl::unexpected<Error>(got.error());
  }
  in_base_ += *got;
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<unsigned>(*got);
  return {};
}

// -1 at the end of the file.
Result<int> GzSource::next_byte() {
  const Status filled = fill();
  if (!filled) {
    return tl::unexpected<Error>(filled.error());
  }
  if (stream_.avail_in == 0) {
    return -1;
  }
  --stream_.avail_in;
  return *stream_.next_in++;
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
  const int flags = header[3];
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
  if (!skipped) {
    return skipped;
  }
  inflateReset(&stream_);
  in_member_ = true;
  first_member_ = false;
  member_offset_ = out_;
  crc_ = 0;
  note_block_start(0);
  return {};
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
  const uint64_t in_bits = in_offset() * 8 - unused_bits;
  BlockStart start{out_, member_offset_, in_bits, crc_, {}};
  if (out_ > member_offset_) {
    start.window.resize(kWindowBytes);
    unsigned length = kWindowBytes;
    inflateGetDictionary(
        &stream_, reinterpret_cast<Bytef*>(start.window.data()), &length);
    start.window.resize(length);
  }
  starts_.push_back(std::move(start));
}

// One call of inflate(), which stops at the end of a block.
Result<size_t> GzSource::inflate_some(char* into, size_t size) {
  const Status filled = fill();
  if (!filled) {
    return tl::unexpected<Error>(filled.error());
  }
  stream_.next_out = reinterpret_cast<Bytef*>(into);
  stream_.avail_out = static_cast<unsigned>(std::min<size_t>(size, 1U << 30));
  const unsigned room = stream_.avail_out;
  const int result = inflate(&stream_, Z_BLOCK);
  const size_t made = room - stream_.avail_out;
  crc_ = static_cast<uint32_t>(
      crc32_z(crc_, reinterpret_cast<const Bytef*>(into), made));
  out_ += made;
  if (result == Z_STREAM_END) {
    const Status ended = end_member();
    if (!ended) {
      return tl::unexpected<Error>(ended.error());
    }
    return made;
  }
  if (result == Z_BUF_ERROR && stream_.avail_in == 0) {
    return fail("gzip file is cut off");
  }
  if (result != Z_OK) {
    return fail("gzip data is damaged");
  }
  const bool block_ended = (stream_.data_type & 128) != 0;
  const bool last_block = (stream_.data_type & 64) != 0;
  if (block_ended && !last_block) {
    note_block_start(static_cast<unsigned>(stream_.data_type) & 7);
  }
  return made;
}

Result<size_t> GzSource::read(char* into, size_t size) {
  size_t done = 0;
  while (done < size && !at_end_) {
    if (!in_member_) {
      const Status begun = begin_member();
      if (!begun) {
        return tl::unexpected<Error>(begun.error());
      }
      continue;
    }
    const Result<size_t> made = inflate_some(into + done, size - done);
    if (!made) {
      return made;
    }
    done += *made;
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
