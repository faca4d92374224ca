#include "cli/trace/gz_splice.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "cli/trace/background_sink.h"
#include "cli/trace/crc.h"
#include "common/base/check.h"

namespace shp {
namespace {

// See GzSink: higher levels cost more time than they save bytes.
constexpr int kLevel = 4;

// The part of the new file behind the kept blocks: deflates what it is given
// and ends the member.
class TailSink : public TextSink {
 public:
  // `bits` (less than 8) of the last kept byte are `first_bits`.
  TailSink(int out, const BlockStart& start, int bits, int first_bits);
  TailSink(const TailSink&) = delete;
  TailSink& operator=(const TailSink&) = delete;
  ~TailSink() override { deflateEnd(&stream_); }

  Status write(std::string_view text) override;
  Status finish() override;
  // Ends part A: what follows does not depend on how it was compressed.
  Status restart();

 private:
  Status deflate_some(std::string_view text, int flush);

  int out_;
  uint32_t crc_;
  uint64_t bytes_;
  bool begun_;
  z_stream stream_{};
  std::vector<unsigned char> buffer_;
};

TailSink::TailSink(int out, const BlockStart& start, int bits, int first_bits)
    : out_(out),
      crc_(start.crc),
      bytes_(start.out_offset - start.member_offset),
      begun_(bits > 0),
      buffer_(256U << 10) {
  SHP_CHECK(
      deflateInit2(
          &stream_, kLevel, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) ==
      Z_OK);
  if (begun_) {
    deflatePrime(&stream_, bits, first_bits);
  }
}

Status TailSink::write(std::string_view text) {
  begun_ = begun_ || !text.empty();
  crc_ = add_crc(crc_, text);
  bytes_ += text.size();
  return deflate_some(text, Z_NO_FLUSH);
}

Status TailSink::restart() {
  if (!begun_) {
    return {};
  }
  const Status flushed = deflate_some({}, Z_SYNC_FLUSH);
  deflateReset(&stream_);
  return flushed;
}

Status TailSink::finish() {
  const Status finished = deflate_some({}, Z_FINISH);
  if (!finished) {
    return finished;
  }
  char trailer[8];
  for (unsigned i = 0; i < 4; ++i) {
    trailer[i] = static_cast<char>(crc_ >> (8 * i));
    trailer[4 + i] = static_cast<char>(bytes_ >> (8 * i));
  }
  return write_fully(out_, {trailer, sizeof(trailer)});
}

Status TailSink::deflate_some(std::string_view text, int flush) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream_.avail_in = static_cast<unsigned>(text.size());
  do {
    stream_.next_out = buffer_.data();
    stream_.avail_out = static_cast<unsigned>(buffer_.size());
    deflate(&stream_, flush);
    const size_t made = buffer_.size() - stream_.avail_out;
    const Status written = write_fully(
        out_, {reinterpret_cast<const char*>(buffer_.data()), made});
    if (!written) {
      return written;
    }
  } while (stream_.avail_out == 0);
  return {};
}

// Moves inflated bytes from the old file to the new one, up to given offsets.
class Mover {
 public:
  Mover(int in, const BlockStart& start)
      : source_(in, start), at_(start.out_offset), buffer_(64U << 10) {}

  Status skip_to(uint64_t end) { return move(end, nullptr); }
  Status copy_to(uint64_t end, TextSink& sink) { return move(end, &sink); }

 private:
  Status move(uint64_t end, TextSink* sink) {
    while (at_ < end) {
      const size_t want =
          static_cast<size_t>(std::min<uint64_t>(buffer_.size(), end - at_));
      const Result<size_t> got = source_.read(buffer_.data(), want);
      if (!got) {
        return tl::unexpected<Error>(got.error());
      }
      if (*got == 0) {
        return error("changed while it was read");
      }
      at_ += *got;
      const Status put =
          sink == nullptr ? Status{} : sink->write({buffer_.data(), *got});
      if (!put) {
        return put;
      }
    }
    return {};
  }

  GzSource source_;
  uint64_t at_;
  std::vector<char> buffer_;
};

Status move_kept(const TraceScan& scan,
                 ByteRange range,
                 Mover& mover,
                 TextSink& sink) {
  return for_kept_bytes(scan, range, [&](ByteRange kept) {
    const Status skipped = mover.skip_to(kept.begin);
    return skipped ? mover.copy_to(kept.end, sink) : skipped;
  });
}

}  // namespace

Status splice_gz(int in,
                 const ScannedTrace& trace,
                 SpliceOutput out,
                 const WriteEvents& write_events) {
  const TraceScan& scan = trace.scan;
  const BlockStart& start = *trace.start;
  const uint64_t change =
      scan.own.empty() ? scan.insert_at
                       : std::min(scan.insert_at, scan.own.front().begin);
  const uint64_t whole_bytes = start.in_bits / 8;
  const int bits = static_cast<int>(start.in_bits % 8);
  char last_kept = 0;
  if (bits > 0) {
    const Result<size_t> got = read_at(in, &last_kept, 1, whole_bytes);
    if (!got || *got != 1) {
      return error("changed while it was read");
    }
  }
  Status state = copy_bytes(in, out.fd, out.has_bytes, whole_bytes);
  if (!state) {
    return state;
  }
  TailSink sink(out.fd, start, bits, last_kept & ((1 << bits) - 1));
  Mover mover(in, start);
  state = mover.copy_to(change, sink);
  state = state ? sink.restart() : state;
  state =
      state ? move_kept(scan, {change, scan.insert_at}, mover, sink) : state;
  BackgroundSink behind(sink);
  state = state ? write_events(behind) : state;
  state = state ? behind.finish() : state;
  state = state ? move_kept(scan, {scan.insert_at, scan.bytes}, mover, sink)
                : state;
  return state ? sink.finish() : state;
}

}  // namespace shp
