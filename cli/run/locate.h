// Where the other two parts are: libshp.so and shpd, looked for beside the
// running `shp`, as an installation, a build tree or a copied folder lays them.
//
// Called once by `shp run`, before anything is started. $SHP_LIB and
// $SHP_DAEMON name them outright. The answer is an absolute path of a file that
// exists; the error names every place that was looked at.
#pragma once

#include <string>

#include "common/base/result.h"

namespace shp {

// The folder of the running executable, or "" where /proc is not mounted.
[[nodiscard]] std::string own_folder();

[[nodiscard]] Result<std::string> find_library(const std::string& folder);
[[nodiscard]] Result<std::string> find_daemon(const std::string& folder);

}  // namespace shp
