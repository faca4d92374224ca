// Where `shp status` and `shp top` look for daemons.
#include "cli/daemons.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cli/terminal_text.h"
#include "common/base/unique_fd.h"
#include "tests/support/temporary_directory.h"

using namespace shp;

namespace {

// A user's own directories below one temporary one. Not root's: root also
// looks into those of all users, which are outside it.
struct Host {
  test::TemporaryDirectory root;
  std::string runtime = root.in("runtime");
  SocketEnvironment environment;
  Host() {
    mkdir(runtime.c_str(), 0700);
    mkdir((runtime + "/shp").c_str(), 0700);
    environment.uid = geteuid();
    environment.xdg_runtime_dir = runtime.c_str();
    environment.run_directory = root.in("run-shp");
    environment.tmp_directory = root.path;
  }
  bool finds(const std::string& path) const {
    const auto all = daemon_sockets(environment);
    return std::count(all.begin(), all.end(), path) == 1;
  }
};

UniqueFd bound_socket(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(bind(fd.get(),
               reinterpret_cast<sockaddr*>(&address),
               sizeof address) == 0);
  return fd;
}

}  // namespace

TEST_CASE("the usual place comes first, a run's daemon behind it") {
  const Host host;
  const std::string run = host.runtime + "/shp/run-17.sock";
  const UniqueFd socket = bound_socket(run);
  const auto all = daemon_sockets(host.environment);
  CHECK(all.front() == host.runtime + "/shp/shpd.sock");
  CHECK(host.finds(run));
}

TEST_CASE("a run's daemon in a folder of its own is found") {
  const Host host;
  const std::string folder = host.root.in("shp-run-abcdef");
  mkdir(folder.c_str(), 0700);
  const UniqueFd socket = bound_socket(folder + "/run-17.sock");
  CHECK(host.finds(folder + "/run-17.sock"));
}

TEST_CASE("files and links of that name are not taken for sockets") {
  const Host host;
  const std::string folder = host.runtime + "/shp";
  const UniqueFd socket = bound_socket(folder + "/run-17.sock");
  host.root.write("runtime/shp/run-18.sock", "");
  REQUIRE(symlink("run-17.sock", (folder + "/run-19.sock").c_str()) == 0);
  CHECK_FALSE(host.finds(folder + "/run-18.sock"));
  CHECK_FALSE(host.finds(folder + "/run-19.sock"));
}

TEST_CASE("another user's socket is left alone") {
  if (geteuid() != 0) {
    return;  // only root can make one
  }
  Host host;
  host.environment.uid = 4242;
  REQUIRE(chown(host.runtime.c_str(), 4242, 4242) == 0);
  const std::string run = host.runtime + "/shp/run-17.sock";
  const UniqueFd socket = bound_socket(run);
  CHECK_FALSE(host.finds(run));
  REQUIRE(chown(run.c_str(), 4242, 4242) == 0);
  CHECK(host.finds(run));
}

TEST_CASE("SHP_SOCKET is the only place when it is set") {
  Host host;
  const UniqueFd socket = bound_socket(host.runtime + "/shp/run-17.sock");
  host.environment.shp_socket = "/x/y.sock";
  CHECK(daemon_sockets(host.environment) ==
        std::vector<std::string>{"/x/y.sock"});
}

TEST_CASE("a socket that nobody listens at is nobody, not a problem") {
  const Host host;
  const std::string run = host.runtime + "/shp/run-17.sock";
  const UniqueFd socket = bound_socket(run);
  const FoundDaemons found = ask_daemons({run, run + ".none"}, 1000);
  CHECK(found.daemons.empty());
  CHECK(found.problems.empty());
  host.root.write("file.sock", "");
  const FoundDaemons file = ask_daemons({host.root.in("file.sock")}, 1000);
  CHECK(file.daemons.empty());
}

TEST_CASE("control characters do not reach a terminal") {
  CHECK(for_terminal("\x1b[2J\x07 a\tb\x7f") == "?[2J? a?b?");
  CHECK(for_terminal("\xc2\x9b"
                     "31m") == "?31m");
  CHECK(for_terminal("r\xc3\xa9sum\xc3\xa9 \xc2\xa0") ==
        "r\xc3\xa9sum\xc3\xa9 \xc2\xa0");
}

TEST_CASE("text is cut between code points") {
  CHECK(for_terminal("abcdefgh", 8) == "abcdefgh");
  CHECK(for_terminal("abcdefghi", 8) == "abcde...");
  CHECK(for_terminal("abcd\xc3\xa9ghi", 8) == "abcd...");
  CHECK(for_terminal("abcdef", 2) == "..");
}
