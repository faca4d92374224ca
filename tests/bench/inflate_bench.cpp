// What merge_bench measures gz merges against: a gz file inflated once, by
// libdeflate, from memory to memory. Prints seconds, and the bytes that came
// out.
//
//     inflate_bench FILE.gz
#include <libdeflate.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

int main(int argc, char** argv) {
  std::ifstream file(argc == 2 ? argv[1] : "", std::ios::binary);
  const std::vector<char> in((std::istreambuf_iterator<char>(file)), {});
  uint32_t size = 0;
  if (in.size() < 18) {
    return 1;
  }
  std::memcpy(&size, in.data() + in.size() - 4, 4);  // of the only member
  libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();
  // Not made before: whoever inflates a file once needs room for it once.
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<char[]> out(new char[size]);
  size_t got = 0;
  const libdeflate_result result = libdeflate_gzip_decompress(
      inflater, in.data(), in.size(), out.get(), size, &got);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  libdeflate_free_decompressor(inflater);
  std::printf("%.4f %zu\n", took.count(), got);
  return result == LIBDEFLATE_SUCCESS ? 0 : 1;
}
