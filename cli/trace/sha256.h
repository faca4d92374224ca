// SHA-256 (FIPS 180-4) of a file, as the manifests of archived host files give
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace shp {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace shp
