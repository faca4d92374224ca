// A session's file read while it grows, as `shp top` does.
#include "cli/stats/live_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

using namespace shp;

namespace {

std::string line(int64_t id) {
  return R"({"type":"span","id":)" + std::to_string(id) +
         R"(,"pid":7,"tid":8,"name":"step","start_ns":5,"duration_ns":2,)"
         R"("args":{}})"
         "\n";
}

constexpr const char* kMark =
    R"({"type":"counter","pid":7,"tid":8,"name":"queue","time_ns":5,)"
    R"("args":{"value":3}})"
    "\n";

struct Growing {
  test::TemporaryDirectory folder;
  std::string text;

  void add(const std::string& more) {
    text += more;
    folder.write("f", text);
  }
  LiveFile open(LiveFile::From from) {
    Result<LiveFile> file = LiveFile::open(folder.in("f"), from);
    REQUIRE(file);
    return std::move(*file);
  }
};

// The ids that came; -1 for a mark.
std::vector<int64_t> ids(LiveFile& file) {
  std::vector<int64_t> out;
  const Status state = file.read([&](const HostSpan& item) {
    out.push_back(item.item == HostItem::kSpan ? item.id : -1);
  });
  REQUIRE(state);
  return out;
}

using Ids = std::vector<int64_t>;

}  // namespace

TEST_CASE("each line comes once, and not before it is all there") {
  Growing growing;
  growing.add(line(1));
  LiveFile file = growing.open(LiveFile::From::kStart);
  CHECK(ids(file) == Ids{1});
  CHECK(ids(file).empty());
  const std::string next = line(2);
  growing.add(next.substr(0, 30));
  CHECK(ids(file).empty());
  growing.add(next.substr(30) + line(3));
  CHECK(ids(file) == Ids{2, 3});
}

TEST_CASE("from the end, what is there is passed over") {
  Growing growing;
  growing.add(line(1) + line(2));
  LiveFile whole = growing.open(LiveFile::From::kEnd);
  growing.add(line(3));
  CHECK(ids(whole) == Ids{3});
}

TEST_CASE("from the end, a line that was cut there is passed over") {
  Growing growing;
  growing.add(line(1) + line(2).substr(0, 40));
  LiveFile file = growing.open(LiveFile::From::kEnd);
  growing.add(line(2).substr(40) + line(3));
  CHECK(ids(file) == Ids{3});
}

TEST_CASE("an empty file's first line counts") {
  Growing growing;
  growing.add("");
  LiveFile file = growing.open(LiveFile::From::kEnd);
  growing.add(line(1));
  CHECK(ids(file) == Ids{1});
}

TEST_CASE("a file that is cut back goes on from there") {
  Growing growing;
  growing.add(line(1) + line(2) + line(3));
  LiveFile file = growing.open(LiveFile::From::kStart);
  CHECK(ids(file) == Ids{1, 2, 3});
  growing.text = line(1);
  growing.add("");
  CHECK(ids(file).empty());
  // What the daemon that cut it writes again was seen: only what is behind.
  growing.add(line(2));
  CHECK(ids(file).empty());
  growing.add(line(3));
  CHECK(ids(file) == Ids{3});
}

TEST_CASE("marks come in their place, other lines do not") {
  Growing growing;
  growing.add(R"({"type":"metadata","schema_version":3})"
              "\n" +
              line(1) + kMark + "no JSON\n{\"type\":\"news\"}\n\n" + line(2));
  LiveFile file = growing.open(LiveFile::From::kStart);
  CHECK(ids(file) == Ids{1, -1, 2});
}

TEST_CASE("a line without an end takes no memory without end") {
  Growing growing;
  growing.add(std::string(40U << 20, 'x'));
  LiveFile file = growing.open(LiveFile::From::kStart);
  CHECK(ids(file).empty());
  growing.add("\n" + line(1));
  CHECK(ids(file) == Ids{1});
}

TEST_CASE("what is not there, or a link, is an error with the path") {
  test::TemporaryDirectory folder;
  const auto none = LiveFile::open(folder.in("none"), LiveFile::From::kEnd);
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find(folder.in("none")) != std::string::npos);
  folder.write("f", "");
  REQUIRE(symlink(folder.in("f").c_str(), folder.in("link").c_str()) == 0);
  CHECK_FALSE(LiveFile::open(folder.in("link"), LiveFile::From::kEnd));
}
