// What a run leaves in its output directory: host files that are closed, and
// those that shpd is still writing. Files that lay there before are not ours.
//
// Used by `shp run`, on its main thread, from before the program starts until
// the summary is printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shp {

class Capture {
 public:
  // Remembers what is in `directory` now.
  explicit Capture(std::string directory);

  // New since then, by name.
  [[nodiscard]] std::vector<std::string> closed() const;
  [[nodiscard]] std::vector<std::string> pending() const;
  [[nodiscard]] std::vector<std::string> traces() const;

  const std::string& directory() const { return directory_; }

 private:
  std::vector<std::string> fresh(bool (*wanted)(std::string_view)) const;

  std::string directory_;
  std::vector<std::string> before_;
};

}  // namespace shp
