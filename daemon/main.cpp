#include <malloc.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include "daemon/daemon.h"
#include "daemon/keeper.h"
#include "daemon/options.h"

int main(int argc, char** argv) {
  shp::Options options;
  const int status = shp::parse_options(argc, argv, &options);
  if (status >= 0) {
    return status;
  }
  // One heap for all session threads: each of glibc's own would keep what its
  // busiest moment took.
  mallopt(M_ARENA_MAX, 1);
  // Files get the mode that their client's umask gives them (peer.h).
  umask(0);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("shpd"));
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  spdlog::set_pattern("shpd[%P]: %l: %v");

  std::vector<shp::NamedFd> inherited = shp::take_inherited();
  if (options.keeper && !shp::under_systemd()) {
    return shp::run_kept(options, std::move(inherited));
  }
  return shp::run_worker(options, std::move(inherited), {});
}
