#include "cli/daemons.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace shp {
namespace {

constexpr const char* kRunSocket = "/run-*.sock";

bool is_absent(const Error& error) {
  return error.errno_value == ENOENT || error.errno_value == ECONNREFUSED;
}

bool is_socket_of(const std::string& path, uid_t uid) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) &&
         (uid == 0 || info.st_uid == uid);
}

void add_matches(const std::string& pattern,
                 uid_t uid,
                 std::vector<std::string>& paths) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string path = found.gl_pathv[i];
      if (is_socket_of(path, uid) &&
          std::find(paths.begin(), paths.end(), path) == paths.end()) {
        paths.push_back(path);
      }
    }
  }
  globfree(&found);
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

std::vector<std::string> daemon_sockets(const SocketEnvironment& environment) {
  std::vector<std::string> paths = socket_candidates(environment);
  if (environment.shp_socket != nullptr && *environment.shp_socket != '\0') {
    return paths;
  }
  const std::vector<std::string> usual = paths;
  for (const std::string& path : usual) {
    add_matches(folder_of(path) + kRunSocket, environment.uid, paths);
  }
  const std::string& tmp = environment.tmp_directory;
  add_matches(tmp + "/shp-run-*" + kRunSocket, environment.uid, paths);
  if (environment.uid == 0) {
    for (const std::string& folder :
         {tmp + "/shp-[0-9]*", std::string("/run/user/*/shp")}) {
      add_matches(folder + "/*.sock", 0, paths);
    }
  }
  return paths;
}

FoundDaemons ask_daemons(const std::vector<std::string>& sockets,
                         int timeout_ms) {
  FoundDaemons found;
  for (const std::string& socket : sockets) {
    Result<DaemonStatus> status = query_daemon(socket, timeout_ms);
    if (status) {
      found.daemons.push_back({socket, std::move(*status)});
    } else if (!is_absent(status.error())) {
      found.problems.push_back(status.error().message);
    }
  }
  return found;
}

Result<FoundDaemons> find_daemons(const std::string& socket, int timeout_ms) {
  const auto sockets = socket.empty()
                           ? daemon_sockets(current_socket_environment())
                           : std::vector<std::string>{socket};
  FoundDaemons found = ask_daemons(sockets, timeout_ms);
  if (!found.daemons.empty()) {
    return found;
  }
  return error(found.problems.empty() ? no_daemon_at(sockets)
                                      : found.problems.front());
}

}  // namespace shp
