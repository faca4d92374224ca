#include "cli/run/locate.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace shp {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// lib, lib64, lib/x86_64-linux-gnu and whatever else a distribution has.
void add_library_folders(const fs::path& prefix, std::vector<fs::path>& out) {
  std::error_code failed;
  for (const char* lib : {"lib", "lib64"}) {
    out.push_back(prefix / lib / "libshp.so");
    out.push_back(prefix / lib / "shp" / "libshp.so");
  }
  for (const auto& entry : fs::directory_iterator(prefix / "lib", failed)) {
    if (entry.path().filename().string().find("-linux-") != std::string::npos) {
      out.push_back(entry.path() / "libshp.so");
      out.push_back(entry.path() / "shp" / "libshp.so");
    }
  }
}

Result<std::string> first_there(const char* variable,
                                const char* what,
                                const std::vector<fs::path>& places) {
  if (const char* named = std::getenv(variable); named && *named) {
    if (!is_file(named)) {
      return error(std::string(variable) + "=" + named + ": no such file");
    }
    std::error_code ignored;
    return fs::absolute(named, ignored).lexically_normal().string();
  }
  std::string looked;
  for (const fs::path& place : places) {
    const fs::path normal = place.lexically_normal();
    if (is_file(normal)) {
      return normal.string();
    }
    looked += (looked.empty() ? "" : ", ") + normal.string();
  }
  return error(std::string(what) + " is not beside shp (looked at " + looked +
               "); set " + variable + " to its path");
}

}  // namespace

std::string own_folder() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  return failed ? "" : self.parent_path().string();
}

Result<std::string> find_library(const std::string& folder) {
  const fs::path here(folder);
  std::vector<fs::path> places{here / "libshp.so",
                               here / "../preload/libshp.so"};
  add_library_folders(here / "..", places);
  return first_there("SHP_LIB", "libshp.so", places);
}

Result<std::string> find_daemon(const std::string& folder) {
  const fs::path here(folder);
  return first_there("SHP_DAEMON",
                     "shpd",
                     {here / "shpd",
                      here / "../daemon/shpd",
                      here / "../libexec/shpd",
                      here / "../libexec/shp/shpd",
                      here / "../sbin/shpd"});
}

}  // namespace shp
