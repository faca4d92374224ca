// Runs a fuzzer's LLVMFuzzerTestOneInput over the files of a folder, and over
// cut and flipped copies of each, for compilers without libFuzzer. The changes
// come from a fixed generator, so that a failure comes again.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
constexpr int kVariants = 200;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

Bytes changed(Bytes bytes, std::mt19937& random) {
  if (bytes.empty()) {
    return bytes;
  }
  const auto below = [&random](size_t n) { return random() % n; };
  switch (random() % 4) {
    case 0:
      bytes.resize(below(bytes.size()));
      break;
    case 1:
      bytes[below(bytes.size())] ^= static_cast<uint8_t>(1U << below(8));
      break;
    case 2:
      bytes[below(bytes.size())] = static_cast<uint8_t>(random());
      break;
    default: {
      const size_t from = below(bytes.size());
      const size_t count = std::min<size_t>(below(64), bytes.size() - from);
      const Bytes piece(bytes.begin() + static_cast<ptrdiff_t>(from),
                        bytes.begin() + static_cast<ptrdiff_t>(from + count));
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(below(bytes.size())),
                   piece.begin(),
                   piece.end());
    }
  }
  return bytes;
}

void run(const Bytes& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(1);
  int seeds = 0;
  run({});
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const Bytes seed = read_file(entry.path());
      run(seed);
      Bytes variant = seed;
      for (int n = 0; n < kVariants; ++n) {
        variant = changed(n % 8 == 0 ? seed : variant, random);
        run(variant);
      }
      ++seeds;
    }
  }
  std::printf("%d seeds, %d variants of each\n", seeds, kVariants);
  return seeds == 0;
}
