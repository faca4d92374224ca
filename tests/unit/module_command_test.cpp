#include "preload/python/module_command.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

// The words that shp would get; "no" when Python is to start.
std::string words_of(std::vector<std::string> line) {
  std::vector<char*> argv;
  for (std::string& word : line) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const int argc = static_cast<int>(line.size());
  char** words = shp::python::module_command(argc, argv.data());
  if (words == nullptr) {
    return "no";
  }
  std::string out;
  for (; *words != nullptr; ++words) {
    out += std::string("[") + *words + "]";
  }
  return out;
}

const std::string kModule = "service_host_profiling";

}  // namespace

TEST_CASE("the module's own words are what follows its name") {
  CHECK(words_of({"python", "-m", kModule}) == "");
  CHECK(words_of({"python", "-m", kModule, "export", "-o", "x", "-m"}) ==
        "[export][-o][x][-m]");
  CHECK(words_of({"python", "-m" + kModule, "--help"}) == "[--help]");
}

TEST_CASE("options of the interpreter may come before") {
  CHECK(words_of({"python", "-Im", kModule, "a"}) == "[a]");
  CHECK(words_of({"python", "-B", "-u", "-m", kModule}) == "");
  CHECK(words_of({"python", "-X", "dev", "-W", "error", "-m", kModule}) == "");
  CHECK(words_of({"python", "-Xdev", "-Wm", "-m", kModule}) == "");
  CHECK(words_of(
            {"python", "--check-hash-based-pycs", "default", "-m", kModule}) ==
        "");
}

TEST_CASE("another module, a script, a command or nothing is Python's") {
  CHECK(words_of({}) == "no");
  CHECK(words_of({"python"}) == "no");
  CHECK(words_of({"python", "-m"}) == "no");
  CHECK(words_of({"python", "-m", "json.tool", "-m", kModule}) == "no");
  CHECK(words_of({"python", "-m", kModule + ".cli"}) == "no");
  CHECK(words_of({"python", "app.py", "-m", kModule}) == "no");
  CHECK(words_of({"python", "-c", "pass", "-m", kModule}) == "no");
  CHECK(words_of({"python", "-Ic", "-m", kModule}) == "no");
  CHECK(words_of({"python", "-", "-m", kModule}) == "no");
  CHECK(words_of({"python", "--version", "-m", kModule}) == "no");
  CHECK(words_of({"python", "-X", "-m", kModule}) == "no");
}
