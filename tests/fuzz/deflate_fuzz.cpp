// Any bytes through our deflate decoder and through zlib's: the same output,
// the same verdict, and going on at any block boundary gives the same rest.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cli/trace/deflate_decoder.h"
#include "common/base/check.h"

using namespace shp;

namespace {

// So that a few bytes of input do not make gigabytes.
constexpr size_t kMaxOut = 4U << 20;

struct Decoded {
  std::string bytes;
  bool whole = false;  // the stream came to its end
  size_t used = 0;     // bytes of input, when whole
};

Decoded by_zlib(const uint8_t* data, size_t size) {
  z_stream stream{};
  SHP_CHECK(inflateInit2(&stream, -15) == Z_OK);
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<unsigned>(size);
  Decoded out;
  std::vector<char> some(65536);
  int result = Z_OK;
  while (result == Z_OK && out.bytes.size() < kMaxOut) {
    stream.next_out = reinterpret_cast<Bytef*>(some.data());
    stream.avail_out = static_cast<unsigned>(some.size());
    result = inflate(&stream, Z_NO_FLUSH);
    out.bytes.append(some.data(), some.size() - stream.avail_out);
  }
  out.whole = result == Z_STREAM_END;
  out.used = stream.total_in;
  inflateEnd(&stream);
  return out;
}

// Where a later decoder may start, and what is left to come from there.
struct Boundary {
  size_t bits;
  size_t bytes_before;
  std::string window;
};

// Gives the input in pieces of `step` bytes.
Decoded by_us(const uint8_t* data,
              size_t size,
              size_t step,
              DeflateDecoder& decoder,
              std::vector<Boundary>* boundaries) {
  Decoded out;
  std::vector<uint8_t> input;
  size_t given = 0;
  DeflateInput in;
  while (out.bytes.size() < kMaxOut) {
    const DeflateDecoder::Stop stop = decoder.run(in);
    out.bytes += decoder.take();
    const size_t at = given - static_cast<size_t>(in.end - in.next);
    if (stop == DeflateDecoder::Stop::kInput) {
      if (in.last) {
        return out;
      }
      const std::vector<uint8_t> left(in.next, in.end);
      const size_t more = std::min(step, size - given);
      input.assign(left.begin(), left.end());
      input.insert(input.end(), data + given, data + given + more);
      given += more;
      const size_t length = input.size();
      input.resize(length + kInputPad, 0xff);
      in = {input.data(), input.data() + length, given == size};
    } else if (stop == DeflateDecoder::Stop::kBlockEnd) {
      if (boundaries != nullptr && boundaries->size() < 4) {
        boundaries->push_back({at * 8 - decoder.unused_bits(),
                               out.bytes.size(),
                               std::string(decoder.window())});
      }
    } else if (stop != DeflateDecoder::Stop::kOutput) {
      out.whole = stop == DeflateDecoder::Stop::kStreamEnd;
      out.used = at;
      return out;
    }
  }
  return out;
}

void check_same(const Decoded& want, const Decoded& got) {
  if (want.bytes.size() >= kMaxOut || got.bytes.size() >= kMaxOut) {
    return;
  }
  SHP_CHECK(want.whole == got.whole);
  if (want.whole) {
    SHP_CHECK(want.bytes == got.bytes && want.used == got.used);
  }
}

void check(const uint8_t* data, size_t size) {
  const Decoded want = by_zlib(data, size);
  std::vector<Boundary> boundaries;
  for (const size_t step : {size_t{1} << 20, size_t{700}}) {
    DeflateDecoder decoder;
    check_same(want, by_us(data, size, step, decoder, &boundaries));
  }
  for (const Boundary& one : boundaries) {
    DeflateDecoder decoder;
    const size_t byte = one.bits / 8;
    const auto gone = static_cast<unsigned>(one.bits % 8);
    decoder.reset((8 - gone) % 8,
                  gone > 0 ? static_cast<unsigned>(data[byte]) >> gone : 0,
                  one.window);
    const size_t from = byte + (gone > 0 ? 1 : 0);
    const Decoded rest =
        by_us(data + from, size - from, 1 << 20, decoder, nullptr);
    SHP_CHECK(rest.whole == want.whole || rest.bytes.size() >= kMaxOut ||
              want.bytes.size() >= kMaxOut);
    if (want.whole && rest.whole) {
      SHP_CHECK(want.bytes.substr(one.bytes_before) == rest.bytes);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check(data, size);
  // Random bytes are no deflate for long: the same as text, compressed.
  z_stream stream{};
  const int level = size == 0 ? 6 : data[0] % 10;
  const int strategy = size < 2 ? 0 : data[1] % 5;
  SHP_CHECK(
      deflateInit2(&stream, level, Z_DEFLATED, -15, 1 + level % 9, strategy) ==
      Z_OK);
  std::string out(deflateBound(&stream, size) + 64, '\0');
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<unsigned>(size);
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  SHP_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  deflateEnd(&stream);
  check(reinterpret_cast<const uint8_t*>(out.data()), stream.total_out);
  return 0;
}
