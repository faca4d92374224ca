#include "common/publish/exclusive_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/support/temporary_directory.h"

namespace shp {
namespace {

using test::TemporaryDirectory;

ExclusiveFile make(const TemporaryDirectory& directory) {
  Result<ExclusiveFile> file = ExclusiveFile::create(directory.fd.get(), "a");
  REQUIRE(file);
  return std::move(*file);
}

Status append(ExclusiveFile& file, std::string_view bytes) {
  return file.append(&bytes);
}

TEST_CASE("a file appears under its name when it is published, and whole") {
  const TemporaryDirectory directory;
  ExclusiveFile file = make(directory);
  REQUIRE(append(file, "....\nsecond\n"));
  CHECK(directory.has("a.pending"));
  CHECK_FALSE(directory.has("a"));
  REQUIRE(file.write_front("head"));
  REQUIRE(file.publish());
  CHECK(directory.read("a") == "head\nsecond\n");
  CHECK_FALSE(directory.has("a.pending"));
  CHECK(file.size() == 12);
  struct stat info;
  REQUIRE(stat(directory.in("a").c_str(), &info) == 0);
  CHECK(info.st_nlink == 1);
}

TEST_CASE("a name that is taken is refused and its file untouched") {
  const TemporaryDirectory directory;
  directory.write("a", "mine");
  const auto refused = ExclusiveFile::create(directory.fd.get(), "a");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().errno_value == EEXIST);
  CHECK(directory.read("a") == "mine");
  CHECK_FALSE(directory.has("a.pending"));
}

TEST_CASE("a pending name that is taken is refused and its file untouched") {
  const TemporaryDirectory directory;
  directory.write("a.pending", "theirs");
  const auto refused = ExclusiveFile::create(directory.fd.get(), "a");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().errno_value == EEXIST);
  CHECK(directory.read("a.pending") == "theirs");
}

TEST_CASE("a link in the pending name's place is not followed") {
  const TemporaryDirectory directory;
  directory.write("victim", "victim");
  std::filesystem::create_symlink("victim", directory.in("a.pending"));
  CHECK_FALSE(ExclusiveFile::create(directory.fd.get(), "a"));
  CHECK(directory.read("victim") == "victim");
}

TEST_CASE("a name that is taken meanwhile wins, and the pending file stays") {
  const TemporaryDirectory directory;
  ExclusiveFile file = make(directory);
  REQUIRE(append(file, "ours"));
  directory.write("a", "theirs");
  const Status published = file.publish();
  REQUIRE_FALSE(published);
  CHECK(published.error().errno_value == EEXIST);
  CHECK(directory.read("a") == "theirs");
  CHECK(directory.read("a.pending") == "ours");
  // And when the name is free again, it can still be published.
  std::filesystem::remove(directory.in("a"));
  CHECK(file.publish());
  CHECK(directory.read("a") == "ours");
}

TEST_CASE("a pending file that was replaced is neither published nor removed") {
  const TemporaryDirectory directory;
  ExclusiveFile file = make(directory);
  REQUIRE(append(file, "ours"));
  std::filesystem::remove(directory.in("a.pending"));
  directory.write("a.pending", "theirs");
  CHECK_FALSE(file.publish());
  file.remove_pending();
  CHECK(directory.read("a.pending") == "theirs");
  CHECK_FALSE(directory.has("a"));
}

TEST_CASE("a write that finds no room can be gone on with") {
  const TemporaryDirectory directory;
  ExclusiveFile file = make(directory);
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const rlimit small{6, old.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string_view rest = "0123456789";
  const Status full = file.append(&rest);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
  REQUIRE_FALSE(full);
  CHECK(full.error().errno_value == EFBIG);
  CHECK(rest == "6789");
  REQUIRE(file.append(&rest));
  REQUIRE(file.publish());
  CHECK(directory.read("a") == "0123456789");
}

TEST_CASE("an unwritable directory is an error that says so") {
  const TemporaryDirectory directory;
  std::filesystem::remove(directory.path);
  const auto refused = ExclusiveFile::create(directory.fd.get(), "a");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().errno_value == ENOENT);
  CHECK(refused.error().message == "a.pending: No such file or directory");
}

TEST_CASE("what is dropped unpublished keeps what was written") {
  const TemporaryDirectory directory;
  {
    ExclusiveFile file = make(directory);
    REQUIRE(append(file, "some"));
  }
  CHECK(directory.read("a.pending") == "some");
}

}  // namespace
}  // namespace shp
