#include <malloc.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cstdio>

#include "daemon/daemon.h"
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

  const shp::Result<bool> ran = shp::run_daemon(options);
  if (!ran) {
    std::fprintf(stderr, "shpd: %s\n", ran.error().message.c_str());
    return 1;
  }
  return 0;
}
