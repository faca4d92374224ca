// The CRC of gzip, from whoever computes it fastest here. Pure.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string_view>

#ifdef SHP_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

namespace shp {

// `crc` is that of the bytes before, 0 at the start.
inline uint32_t add_crc(uint32_t crc, std::string_view bytes) {
#ifdef SHP_HAVE_LIBDEFLATE
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
#else
  return static_cast<uint32_t>(
      crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
#endif
}

}  // namespace shp
