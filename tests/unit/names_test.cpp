#include "preload/names.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "preload/recorder.h"

using shp::recorder::intern_c_name;
using shp::recorder::intern_name;

TEST_CASE("the same text has the same id, another text another") {
  const uint32_t step = intern_name("step");
  CHECK(step != shp::kNoName);
  CHECK(intern_name(std::string("st") + "ep") == step);
  CHECK(intern_name("step2") != step);
}

TEST_CASE("an empty name and one with NUL are none") {
  CHECK(intern_name("") == shp::kNoName);
  CHECK(intern_name(std::string_view("a\0b", 3)) == shp::kNoName);
  CHECK(intern_c_name(nullptr) == shp::kNoName);
  CHECK(intern_c_name("") == shp::kNoName);
}

TEST_CASE("a name of 100 kB is kept whole, one over a MiB is cut") {
  const std::string large(100'000, 'x');
  CHECK(intern_name(large) == intern_name(large));
  CHECK(intern_name(large) != intern_name(large + "y"));
  const std::string huge(shp::kMaxNameBytes + 10, 'z');
  CHECK(intern_name(huge) == intern_name(huge.substr(0, shp::kMaxNameBytes)));
}

TEST_CASE("a cut falls between two characters") {
  // 0xc3 0xa9 (e acute) stands astride the limit: both its bytes go.
  std::string name(shp::kMaxNameBytes - 1, 'q');
  name += "\xc3\xa9";
  CHECK(intern_name(name) ==
        intern_name(std::string(shp::kMaxNameBytes - 1, 'q')));
}

TEST_CASE("a reused buffer is looked at, not just its address") {
  char buffer[16];
  std::memcpy(buffer, "first", 6);
  const uint32_t first = intern_c_name(buffer);
  std::memcpy(buffer, "other", 6);
  const uint32_t other = intern_c_name(buffer);
  CHECK(first != other);
  CHECK(other == intern_name("other"));
}

TEST_CASE("threads that add the same names agree on their ids") {
  constexpr int kThreads = 4;
  constexpr int kNames = 2000;
  std::vector<std::vector<uint32_t>> ids(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kNames; ++i) {
        mine.push_back(intern_name("shared" + std::to_string(i)));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(std::set<uint32_t>(ids[0].begin(), ids[0].end()).size() == kNames);
  for (const auto& other : ids) {
    CHECK(other == ids[0]);
  }
}

TEST_CASE("a forked child knows the parent's names and adds its own") {
  const uint32_t before = intern_name("before fork");
  const pid_t child = fork();
  if (child == 0) {
    const bool same = intern_name("before fork") == before;
    const bool fresh = intern_name("in the child") > before;
    _exit(same && fresh ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
