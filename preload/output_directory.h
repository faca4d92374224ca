// The directory that a session's file goes to. Control path.
#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp::recorder {

// Makes it with its parents where it is missing, opens it, and gives in `real`
// its absolute path without links. errno_value as mkdir has it: EEXIST where a
// file is in its place, ENOTDIR where one is in a parent's.
Result<UniqueFd> open_directory(const std::string& wanted, std::string& real);

}  // namespace shp::recorder
