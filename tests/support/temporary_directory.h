// A directory that is gone again at the end of a test.
#pragma once

#include <fcntl.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/base/check.h"
#include "common/base/unique_fd.h"

namespace shp::test {

struct TemporaryDirectory {
  TemporaryDirectory() {
    char name[] = "/tmp/shp-test-XXXXXX";
    SHP_CHECK(mkdtemp(name) != nullptr);
    path = name;
    fd.reset(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string in(const std::string& name) const { return path + "/" + name; }
  bool has(const std::string& name) const {
    return std::filesystem::exists(in(name));
  }
  std::string read(const std::string& name) const {
    std::ifstream file(in(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(in(name), std::ios::binary) << text;
  }

  std::string path;
  UniqueFd fd;
};

}  // namespace shp::test
