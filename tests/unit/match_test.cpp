#include "cli/trace/match.h"

#include <doctest/doctest.h>

using namespace shp;

namespace {

HostFacts host(const char* path,
               int64_t pid,
               const char* hostname,
               int64_t begin,
               int64_t end) {
  HostFacts facts;
  facts.path = path;
  facts.pid = pid;
  facts.os_pid = pid;
  facts.hostname = hostname;
  facts.session.add(begin, end);
  return facts;
}

TraceFacts trace(std::vector<int64_t> pids, const char* host_name) {
  TraceFacts facts;
  facts.host_pids = std::move(pids);
  facts.host_name = host_name;
  facts.window.add(1'000, 2'000);
  return facts;
}

using Found = std::vector<size_t>;

// The host files of the only process that was matched.
Found found(const TraceFacts& facts, const std::vector<HostFacts>& hosts) {
  const Match match = match_trace(facts, hosts);
  return match.processes.size() == 1 ? match.processes[0].hosts : Found{};
}

}  // namespace

TEST_CASE("a trace gets the host files of its pid that overlap it in time") {
  const std::vector<HostFacts> hosts = {host("a", 7, "h", 0, 1'500),
                                        host("b", 8, "h", 0, 5'000),
                                        host("c", 7, "h", 1'600, 3'000),
                                        host("d", 7, "h", 3'001, 4'000)};
  const Match match = match_trace(trace({7}, ""), hosts);
  CHECK(match.problem.empty());
  REQUIRE(match.processes.size() == 1);
  CHECK(match.processes[0].pid == 7);
  CHECK(match.processes[0].hosts == Found{0, 2});
}

TEST_CASE("touching windows overlap") {
  CHECK(found(trace({7}, ""), {host("a", 7, "h", 0, 1'000)}) == Found{0});
  CHECK(match_trace(trace({7}, ""), {host("a", 7, "h", 0, 999)}).problem ==
        "pid 7 does not overlap in time with a (host h, OS pid 7)");
}

TEST_CASE("another pid or another host is no match, and says why") {
  CHECK(match_trace(trace({7}, ""), {host("a", 8, "h", 0, 9'000)}).problem ==
        "no host file of pid 7");
  const Match other =
      match_trace(trace({7}, "g"), {host("a", 7, "h", 0, 9'000)});
  CHECK(other.problem ==
        "pid 7 is of host g, not that of a (host h, OS pid 7)");
  CHECK_FALSE(other.ambiguous);
}

TEST_CASE("a host's short and full name are the same") {
  CHECK(same_host_name("node7", "NODE7.lan"));
  CHECK(same_host_name("node7", "node7"));
  CHECK_FALSE(same_host_name("node7", "node70"));
  CHECK_FALSE(same_host_name("", "node7"));
}

TEST_CASE("two processes of one pid are an ambiguity") {
  const Match hosts = match_trace(
      trace({7}, ""),
      {host("a", 7, "g", 0, 900 + 200), host("b", 7, "h", 1'500, 1'600)});
  CHECK(hosts.ambiguous);
  CHECK(hosts.problem ==
        "host files of several processes have pid 7: a (host g, OS pid 7), b "
        "(host h, OS pid 7); settle it with --pid-map, keyed by \"HOST:PID\"");
  // The trace's own host name settles it.
  CHECK(found(trace({7}, "h"),
              {host("a", 7, "g", 0, 1'100), host("b", 7, "h", 1'500, 1'600)}) ==
        Found{1});
  // Sessions of one process do not overlap.
  CHECK(match_trace(
            trace({7}, ""),
            {host("a", 7, "h", 0, 1'100), host("b", 7, "h", 1'050, 1'600)})
            .ambiguous);
  std::vector<HostFacts> containers = {host("a", 7, "h", 0, 1'100),
                                       host("b", 7, "h", 1'500, 1'600)};
  containers[0].pid_namespace = 1;
  containers[1].pid_namespace = 2;
  CHECK(match_trace(trace({7}, ""), containers).ambiguous);
}

TEST_CASE("what --pid-map names goes first") {
  std::vector<HostFacts> hosts = {host("a", 7, "h", 0, 1'100),
                                  host("b", 7, "h", 1'050, 1'600)};
  hosts[1].mapped = true;
  CHECK(found(trace({7}, ""), hosts) == Found{1});
}

TEST_CASE("every host process of the trace gets its own, the likeliest first") {
  const std::vector<HostFacts> hosts = {host("a", 9, "h", 0, 9'000),
                                        host("b", 8, "h", 0, 9'000),
                                        host("c", 7, "h", 0, 9'000)};
  const Match match = match_trace(trace({7, 10, 9}, ""), hosts);
  CHECK(match.problem.empty());
  REQUIRE(match.processes.size() == 2);
  CHECK(match.processes[0].pid == 7);
  CHECK(match.processes[0].hosts == Found{2});
  CHECK(match.processes[1].pid == 9);
  CHECK(match.processes[1].hosts == Found{0});
  // None at all: why not, of the likeliest.
  CHECK(match_trace(trace({1, 2}, ""), hosts).problem ==
        "no host file of pid 1");
}
