#include "preload/python/on_load.h"

namespace shp::python {

void on_load() noexcept {}

}  // namespace shp::python
