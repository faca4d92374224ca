// A descriptor and what it is called in the descriptor store.
#pragma once

#include <string>

#include "common/base/unique_fd.h"

namespace shp {

struct NamedFd {
  std::string name;
  UniqueFd fd;
};

}  // namespace shp
