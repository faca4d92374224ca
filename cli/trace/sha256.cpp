#include "cli/trace/sha256.h"

#include <fcntl.h>

#include <array>
#include <cstring>
#include <vector>

#include "cli/trace/byte_source.h"
#include "common/base/unique_fd.h"

namespace shp {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate(uint32_t value, int by) {
  return value >> by | value << (32 - by);
}

class Sha256 {
 public:
  void add(std::string_view bytes) {
    total_ += bytes.size();
    while (!bytes.empty()) {
      const size_t some = std::min(bytes.size(), sizeof(block_) - used_);
      std::memcpy(block_ + used_, bytes.data(), some);
      used_ += some;
      bytes.remove_prefix(some);
      if (used_ == sizeof(block_)) {
        mix();
        used_ = 0;
      }
    }
  }

  std::string hex() {
    const uint64_t bits = total_ * 8;
    add("\x80");
    while (used_ != 56) {
      add(std::string_view("\0", 1));
    }
    char length[8];
    for (unsigned i = 0; i < 8; ++i) {
      length[i] = static_cast<char>(bits >> (56 - 8 * i));
    }
    add({length, 8});
    std::string out;
    for (const uint32_t word : state_) {
      for (int shift = 28; shift >= 0; shift -= 4) {
        out += "0123456789abcdef"[word >> shift & 15];
      }
    }
    return out;
  }

 private:
  uint32_t word_at(size_t offset) const {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) {
      word = word << 8 | static_cast<unsigned char>(block_[offset + i]);
    }
    return word;
  }

  void mix() {
    uint32_t w[64];
    for (size_t i = 0; i < 16; ++i) {
      w[i] = word_at(4 * i);
    }
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t s0 =
          rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
      const uint32_t s1 =
          rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) {
      state_[i] += mixed[i];
    }
  }

  std::array<uint32_t, 8> state_ = {0x6a09e667,
                                    0xbb67ae85,
                                    0x3c6ef372,
                                    0xa54ff53a,
                                    0x510e527f,
                                    0x9b05688c,
                                    0x1f83d9ab,
                                    0x5be0cd19};
  char block_[64];
  size_t used_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

Result<std::string> sha256_of_file(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return errno_error(path, errno);
  }
  Sha256 sum;
  std::vector<char> buffer(256U << 10);
  PlainSource source(fd.get());
  while (true) {
    const Result<size_t> got = source.read(buffer.data(), buffer.size());
    if (!got) {
      return context(path, got.error());
    }
    if (*got == 0) {
      return sum.hex();
    }
    sum.add({buffer.data(), *got});
  }
}

}  // namespace shp
