#include "cli/run/capture.h"

#include <algorithm>
#include <filesystem>

#include "common/jsonl/span_format.h"

namespace shp {
namespace {

namespace fs = std::filesystem;

// Programs put captures into folders of their own below the one that we name;
// deeper than this is somebody else's tree.
constexpr int kMaxDepth = 4;

bool is_closed(std::string_view name) {
  return name.ends_with(kHostFileSuffix);
}

bool is_pending(std::string_view name) {
  return name.ends_with(std::string(kHostFileSuffix) +
                        std::string(kPendingSuffix));
}

bool is_trace(std::string_view name) {
  return name.ends_with(".trace.json") || name.ends_with(".trace.json.gz");
}

template <typename Use>
void each_file(const std::string& directory, Use use) {
  std::error_code failed;
  for (fs::recursive_directory_iterator at(
           directory, fs::directory_options::skip_permission_denied, failed);
       !failed && at != fs::recursive_directory_iterator();
       at.increment(failed)) {
    if (at.depth() >= kMaxDepth) {
      at.disable_recursion_pending();
    }
    std::error_code ignored;
    if (at->is_regular_file(ignored)) {
      use(at->path().string());
    }
  }
}

}  // namespace

Capture::Capture(std::string directory) : directory_(std::move(directory)) {
  each_file(directory_,
            [this](std::string path) { before_.push_back(std::move(path)); });
  std::sort(before_.begin(), before_.end());
}

std::vector<std::string> Capture::fresh(
    bool (*wanted)(std::string_view)) const {
  std::vector<std::string> found;
  each_file(directory_, [&](std::string path) {
    if (wanted(path) &&
        !std::binary_search(before_.begin(), before_.end(), path)) {
      found.push_back(std::move(path));
    }
  });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> Capture::closed() const {
  return fresh(is_closed);
}
std::vector<std::string> Capture::pending() const {
  return fresh(is_pending);
}
std::vector<std::string> Capture::traces() const {
  return fresh(is_trace);
}

}  // namespace shp
