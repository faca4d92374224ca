#include "preload/log.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace shp::recorder {

void log_line(std::string_view what, std::string_view detail) noexcept {
  const char* wanted = std::getenv("SHP_LOG");
  if (wanted == nullptr || wanted[0] == '\0' || std::strcmp(wanted, "0") == 0) {
    return;
  }
  const int saved = errno;
  char line[1024];
  const int length =
      snprintf(line,
               sizeof(line),
               "libshp[%d]: %.*s: %.*s\n",
               getpid(),
               static_cast<int>(std::min<size_t>(what.size(), 200)),
               what.data(),
               static_cast<int>(std::min<size_t>(detail.size(), 700)),
               detail.data());
  if (length > 0 && write(STDERR_FILENO,
                          line,
                          std::min<size_t>(static_cast<size_t>(length),
                                           sizeof(line) - 1)) < 0) {
    // Nobody to tell.
  }
  errno = saved;
}

}  // namespace shp::recorder
