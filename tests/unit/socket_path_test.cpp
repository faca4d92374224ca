#include "common/protocol/socket_path.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace shp {
namespace {

// A user with uid's own runtime directory, /run/shp and /tmp, all below one
// temporary directory.
struct Host {
  std::string root;
  std::string runtime;
  SocketEnvironment environment;
  Host() {
    char name[] = "/tmp/shp-path-XXXXXX";
    root = mkdtemp(name);
    runtime = root + "/runtime";
    mkdir(runtime.c_str(), 0700);
    environment.uid = geteuid();
    environment.xdg_runtime_dir = runtime.c_str();
    environment.run_directory = root + "/run-shp";
    environment.tmp_directory = root;
  }
  ~Host() { std::filesystem::remove_all(root); }
  std::string tmp() const {
    return root + "/shp-" + std::to_string(environment.uid);
  }
};

TEST_CASE("SHP_SOCKET is the only place when it is set") {
  Host host;
  host.environment.shp_socket = "/x/y.sock";
  CHECK(own_socket_path(host.environment) == "/x/y.sock");
  CHECK(socket_candidates(host.environment) ==
        std::vector<std::string>{"/x/y.sock"});
}

TEST_CASE("a runtime directory comes before the system's") {
  const Host host;
  CHECK(own_socket_path(host.environment) == host.runtime + "/shp/shpd.sock");
  CHECK(socket_candidates(host.environment) ==
        std::vector<std::string>{host.runtime + "/shp/shpd.sock",
                                 host.root + "/run-shp/shpd.sock"});
  REQUIRE(prepare_socket_directory(host.environment));
  struct stat info;
  REQUIRE(stat((host.runtime + "/shp").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  CHECK(prepare_socket_directory(host.environment));
}

TEST_CASE("somebody else's, a relative or an empty runtime directory is none") {
  Host host;
  host.environment.xdg_runtime_dir = "";
  CHECK(socket_candidates(host.environment).size() == 1);
  host.environment.xdg_runtime_dir = "runtime";
  CHECK(socket_candidates(host.environment).size() == 1);
  host.environment.xdg_runtime_dir = host.runtime.c_str();
  host.environment.uid = geteuid() + 1;
  CHECK(socket_candidates(host.environment).size() == 1);
}

TEST_CASE("without runtime directory or right to /run it is one's own in tmp") {
  Host host;
  host.environment.xdg_runtime_dir = nullptr;
  if (geteuid() == 0) {
    // Root's is always the system's.
    CHECK(own_socket_path(host.environment) ==
          host.root + "/run-shp/shpd.sock");
    return;
  }
  CHECK(own_socket_path(host.environment) == host.tmp() + "/shpd.sock");
  REQUIRE(prepare_socket_directory(host.environment));
  CHECK(socket_candidates(host.environment).back() ==
        host.tmp() + "/shpd.sock");
}

TEST_CASE("a tmp directory that others may write to is not looked at") {
  Host host;
  host.environment.xdg_runtime_dir = nullptr;
  REQUIRE(mkdir(host.tmp().c_str(), 0700) == 0);
  CHECK(socket_candidates(host.environment).size() == 2);
  REQUIRE(chmod(host.tmp().c_str(), 0777) == 0);
  CHECK(socket_candidates(host.environment).size() == 1);
  REQUIRE(rmdir(host.tmp().c_str()) == 0);
  REQUIRE(symlink(host.runtime.c_str(), host.tmp().c_str()) == 0);
  CHECK(socket_candidates(host.environment).size() == 1);
}

}  // namespace
}  // namespace shp
