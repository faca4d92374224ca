// The package's Python sources, inside the library: embed_sources.py makes the
// table at build time.
#pragma once

#include <cstddef>
#include <span>

namespace shp::python {

struct EmbeddedSource {
  const char* module;  // "service_host_profiling.collector"
  bool is_package;
  const char* text;  // UTF-8; a NUL follows the last byte
  size_t bytes;
};

std::span<const EmbeddedSource> embedded_sources() noexcept;

// The source of _embedded.py, which serves all others.
const EmbeddedSource* find_embedded(const char* module) noexcept;

}  // namespace shp::python
