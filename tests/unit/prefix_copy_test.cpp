// A copy that runs ahead of the scan: whatever is asked for in the end is
// there, and nothing behind it.

#include "cli/trace/prefix_copy.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "common/base/unique_fd.h"

using namespace shp;

namespace {

constexpr size_t kBytes = 40'000'003;

std::string numbers() {
  std::string out;
  while (out.size() < kBytes) {
    out += std::to_string(out.size()) + ",";
  }
  out.resize(kBytes);
  return out;
}

std::string content(int fd) {
  struct stat status;
  REQUIRE(fstat(fd, &status) == 0);
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  REQUIRE(pread(fd, bytes.data(), bytes.size(), 0) == status.st_size);
  return bytes;
}

}  // namespace

TEST_CASE("the output holds what stays, and more goes behind it") {
  const std::string text = numbers();
  const UniqueFd in(memfd_create("in", MFD_CLOEXEC));
  REQUIRE(write(in.get(), text.data(), text.size()) ==
          static_cast<ssize_t>(text.size()));
  for (const size_t wanted :
       {size_t{0}, size_t{1}, size_t{35'000'000}, kBytes - 1, kBytes}) {
    CAPTURE(wanted);
    const UniqueFd out(memfd_create("out", MFD_CLOEXEC));
    PrefixCopy copy(in.get(), [&] { return Result<int>(out.get()); });
    copy.allow(1000);
    copy.allow(34'000'000);
    copy.allow(36'000'000);
    const Result<uint64_t> got = copy.finish(wanted);
    REQUIRE(got);
    CHECK(*got == wanted);
    REQUIRE(write(out.get(), "end", 3) == 3);
    CHECK(content(out.get()) == text.substr(0, wanted) + "end");
  }
}

TEST_CASE(
    "nothing is made for a small file, and a refusal only costs the lead") {
  const UniqueFd in(memfd_create("in", MFD_CLOEXEC));
  int asked = 0;
  const auto refuse = [&] {
    ++asked;
    return Result<int>(error("no"));
  };
  PrefixCopy small(in.get(), refuse);
  small.allow(1'000'000);
  CHECK(small.finish(1'000'000).value() == 0);
  CHECK(asked == 0);
  PrefixCopy refused(in.get(), refuse);
  refused.allow(100'000'000);
  refused.allow(200'000'000);
  CHECK(refused.finish(100).value() == 0);
  CHECK(asked == 1);
}

TEST_CASE("a file that ends early is copied as far as it goes") {
  const UniqueFd in(memfd_create("in", MFD_CLOEXEC));
  REQUIRE(ftruncate(in.get(), 9'000'000) == 0);
  const UniqueFd out(memfd_create("out", MFD_CLOEXEC));
  PrefixCopy copy(in.get(), [&] { return Result<int>(out.get()); });
  copy.allow(40'000'000);
  const Result<uint64_t> got = copy.finish(40'000'000);
  REQUIRE(got);
  CHECK(content(out.get()).size() == *got);
}
