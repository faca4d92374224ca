// gz files as byte sources, and splicing into them: made by zlib's own deflate,
// read back by zlib's own inflate.

#include "cli/trace/gz_splice.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "cli/trace/trace_file.h"
#include "common/base/unique_fd.h"

using namespace shp;

namespace {

// One gzip member; a block ends every `block` bytes (0: where zlib likes).
std::string gz(const std::string& text, size_t block = 0, int level = 6) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, 31, 8, 0) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + text.size() + 1000,
                  '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  for (size_t at = 0; at < text.size();) {
    const size_t some =
        std::min(block == 0 ? text.size() : block, text.size() - at);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + at));
    stream.avail_in = static_cast<unsigned>(some);
    // Z_BLOCK ends blocks at any bit.
    REQUIRE(deflate(&stream, block == 0 ? Z_NO_FLUSH : Z_BLOCK) == Z_OK);
    at += some;
  }
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// All members, strictly.
std::string gunzip(std::string data) {
  std::string out;
  while (!data.empty()) {
    z_stream stream{};
    REQUIRE(inflateInit2(&stream, 31) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(data.data());
    stream.avail_in = static_cast<unsigned>(data.size());
    int result = Z_OK;
    while (result == Z_OK) {
      char some[10'000];
      stream.next_out = reinterpret_cast<Bytef*>(some);
      stream.avail_out = sizeof(some);
      result = inflate(&stream, Z_NO_FLUSH);
      out.append(some, sizeof(some) - stream.avail_out);
    }
    REQUIRE(result == Z_STREAM_END);
    data.erase(0, stream.total_in);
    inflateEnd(&stream);
  }
  return out;
}

UniqueFd file_of(const std::string& bytes) {
  UniqueFd fd(memfd_create("gz", MFD_CLOEXEC));
  REQUIRE(write(fd.get(), bytes.data(), bytes.size()) ==
          static_cast<ssize_t>(bytes.size()));
  return fd;
}

std::string content(int fd) {
  struct stat status;
  REQUIRE(fstat(fd, &status) == 0);
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  REQUIRE(pread(fd, bytes.data(), bytes.size(), 0) == status.st_size);
  return bytes;
}

std::string event(const std::string& cat, int number) {
  return R"({"ph":"X","cat":")" + cat + R"(","name":"n)" +
         std::to_string(number * 7919 % 10'007) + R"(","pid":5,"tid":)" +
         std::to_string(number % 3) + R"(,"ts":)" + std::to_string(number) +
         "}";
}

std::string events(const std::string& cat, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += (i == 0 ? "" : ",\n") + event(cat, i);
  }
  return out;
}

std::string merged(const std::string& file, const std::string& ours) {
  const UniqueFd in = file_of(file);
  const Result<ScannedTrace> scanned = scan_file(in.get());
  REQUIRE(scanned);
  REQUIRE(scanned->gz);
  const UniqueFd out(memfd_create("out", MFD_CLOEXEC));
  const Status done =
      splice(in.get(), *scanned, {out.get(), 0}, [&](TextSink& sink) {
        return sink.write((scanned->scan.has_events ? ",\n" : "") + ours);
      });
  REQUIRE(done);
  return content(out.get());
}

std::string inflated(const std::string& file) {
  const UniqueFd fd = file_of(file);
  GzSource source(fd.get());
  std::string out;
  char some[777];
  while (true) {
    const Result<size_t> got = source.read(some, sizeof(some));
    if (!got) {
      return got.error().message;
    }
    if (*got == 0) {
      return out;
    }
    out.append(some, *got);
  }
}

}  // namespace

TEST_CASE("members are inflated one after the other, padding is no member") {
  const std::string text = events("cpu_op", 2'000);
  CHECK(inflated(gz(text)) == text);
  CHECK(inflated(gz("a") + gz("") + gz(text, 500)) == "a" + text);
  CHECK(inflated(gz(text) + std::string(512, '\0')) == text);
  CHECK(inflated(gz(text, 0, 0)) == text);
}

// The file is read in pieces; every shift lets another bit of a block, its end
// too, be the first of the second piece.
TEST_CASE("a block may end anywhere around the end of a piece") {
  std::string text;
  uint32_t state = 1;
  while (text.size() < 300'000) {
    state = state * 1'664'525 + 1'013'904'223;
    text += static_cast<char>('a' + (state >> 24) % 26);
  }
  const std::string plain = gz(text, 1'500);
  for (size_t shift = 0; shift < 1'000; shift += 3) {
    std::string named = plain;
    named[3] = 8;  // FNAME
    named.insert(10, std::string(shift, 'n') + '\0');
    REQUIRE(inflated(named) == text);
  }
}

TEST_CASE("a damaged or cut off gz file is an error with its byte") {
  const std::string file = gz(events("cpu_op", 500));
  const std::string bytes = std::to_string(file.size());
  CHECK(inflated(file.substr(0, file.size() - 3)) ==
        "compressed byte " + std::to_string(file.size() - 3) +
            ": gzip file is cut off");
  CHECK(inflated(file.substr(0, file.size() / 2)).find("is cut off") !=
        std::string::npos);
  std::string flipped = file;
  flipped[file.size() - 8] ^= 1;
  CHECK(inflated(flipped) == "compressed byte " + bytes +
                                 ": gzip data is damaged (CRC does not match)");
  flipped = file;
  flipped[file.size() - 1] ^= 1;
  CHECK(inflated(flipped) ==
        "compressed byte " + bytes +
            ": gzip data is damaged (length does not match)");
  CHECK(inflated(file + "junk behind it").find("is not a gzip member") !=
        std::string::npos);
  CHECK(inflated(file.substr(0, 5)) ==
        "compressed byte 5: gzip file is cut off in a header");
}

TEST_CASE("spans go in before the bracket, and a second run changes nothing") {
  const std::string head = R"({"a":1,"traceEvents":[)";
  const std::string tail = "\n ], \"baseTimeNanoseconds\": 12 }\n";
  const std::string ours = events("shp", 300);
  for (const int count : {0, 1, 50, 20'000}) {
    const std::string others = events("cpu_op", count);
    const std::string want =
        head + others + (count == 0 ? "" : ",\n") + ours + tail;
    for (const size_t block : {size_t{0}, size_t{1'000}, size_t{33'333}}) {
      for (const int level : {0, 1, 9}) {
        CAPTURE(count);
        CAPTURE(block);
        CAPTURE(level);
        const std::string once =
            merged(gz(head + others + tail, block, level), ours);
        CHECK(gunzip(once) == want);
        CHECK(merged(once, ours) == once);
        // Other spans replace them, none removes them.
        CHECK(gunzip(merged(once, event("shp", 1))) ==
              head + others + (count == 0 ? "" : ",\n") + event("shp", 1) +
                  tail);
      }
    }
  }
}

TEST_CASE("the compressed bytes before the change are carried over") {
  const std::string file =
      gz("{\"traceEvents\":[" + events("cpu_op", 50'000) + "]}");
  const std::string once = merged(file, events("shp", 10));
  size_t same = 0;
  while (once[same] == file[same]) {
    ++same;
  }
  CHECK(same > file.size() * 8 / 10);
}

TEST_CASE("members after the place of change become part of one") {
  const std::string others = events("cpu_op", 3'000);
  const std::string text = "{\"traceEvents\":[" + others + "],\"z\":0}";
  const std::string ours = events("shp", 20);
  const std::string want =
      "{\"traceEvents\":[" + others + ",\n" + ours + "],\"z\":0}";
  for (const size_t cut : {size_t{5},
                           text.size() / 2,
                           text.size() - 9,
                           text.size() - 8,
                           text.size() - 2}) {
    CAPTURE(cut);
    const std::string file =
        gz(text.substr(0, cut)) + gz(text.substr(cut), 700);
    const std::string once = merged(file, ours);
    CHECK(gunzip(once) == want);
    CHECK(merged(once, ours) == once);
  }
}
