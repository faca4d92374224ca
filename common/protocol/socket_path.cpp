#include "common/protocol/socket_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace shp {
namespace {

constexpr const char* kSocketName = "/shpd.sock";

bool is_set(const char* value) {
  return value != nullptr && *value != '\0';
}

bool is_private_directory(const std::string& path, uid_t uid) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == uid && (info.st_mode & 0022) == 0;
}

// `su` and `sudo -E` leave another user's XDG_RUNTIME_DIR behind: it counts
// only when it is this user's own.
bool has_runtime_directory(const SocketEnvironment& environment) {
  struct stat info;
  return is_set(environment.xdg_runtime_dir) &&
         environment.xdg_runtime_dir[0] == '/' &&
         stat(environment.xdg_runtime_dir, &info) == 0 &&
         S_ISDIR(info.st_mode) && info.st_uid == environment.uid;
}

std::string tmp_directory(const SocketEnvironment& environment) {
  return environment.tmp_directory + "/shp-" + std::to_string(environment.uid);
}

enum class Place { kGiven, kRuntime, kRun, kTmp };

Place own_place(const SocketEnvironment& environment) {
  if (is_set(environment.shp_socket)) {
    return Place::kGiven;
  }
  if (has_runtime_directory(environment)) {
    return Place::kRuntime;
  }
  if (environment.uid == 0 ||
      access(environment.run_directory.c_str(), W_OK) == 0) {
    return Place::kRun;
  }
  return Place::kTmp;
}

std::string own_directory(const SocketEnvironment& environment, Place place) {
  switch (place) {
    case Place::kRuntime:
      return std::string(environment.xdg_runtime_dir) + "/shp";
    case Place::kRun:
      return environment.run_directory;
    default:
      return tmp_directory(environment);
  }
}

}  // namespace

SocketEnvironment current_socket_environment() {
  SocketEnvironment environment;
  environment.shp_socket = std::getenv("SHP_SOCKET");
  environment.xdg_runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  environment.uid = geteuid();
  return environment;
}

std::vector<std::string> socket_candidates(
    const SocketEnvironment& environment) {
  if (is_set(environment.shp_socket)) {
    return {environment.shp_socket};
  }
  std::vector<std::string> paths;
  if (has_runtime_directory(environment)) {
    paths.push_back(own_directory(environment, Place::kRuntime) + kSocketName);
  }
  paths.push_back(environment.run_directory + kSocketName);
  const std::string tmp = tmp_directory(environment);
  if (is_private_directory(tmp, environment.uid)) {
    paths.push_back(tmp + kSocketName);
  }
  return paths;
}

std::string own_socket_path(const SocketEnvironment& environment) {
  const Place place = own_place(environment);
  return place == Place::kGiven
             ? std::string(environment.shp_socket)
             : own_directory(environment, place) + kSocketName;
}

Status prepare_socket_directory(const SocketEnvironment& environment) {
  const Place place = own_place(environment);
  if (place == Place::kGiven) {
    return {};
  }
  const std::string directory = own_directory(environment, place);
  const mode_t mode = place == Place::kRun ? 0755 : 0700;
  if (mkdir(directory.c_str(), mode) != 0 && errno != EEXIST) {
    return errno_error(directory, errno);
  }
  if (place == Place::kRun) {
    return {};  // root's /run decides who may write there
  }
  if (!is_private_directory(directory, environment.uid)) {
    return error(directory + ": not a directory of this user alone");
  }
  return {};
}

}  // namespace shp
