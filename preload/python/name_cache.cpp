#include "preload/python/name_cache.h"

#include <cstring>

#include "preload/python/text.h"

namespace shp::python {

NameCache::Entry NameCache::entries_[kEntries];

uint32_t NameCache::look_up(PyObject* name) noexcept {
  if (!is_a(name, kTypeIsStr)) {
    return kNoName;
  }
  const Text text(name);
  if (!text.ok()) {
    return kNoName;
  }
  const uint32_t id = recorder::intern_name(text.view());
  // Each span that shares the last id is counted, so that one is looked up.
  if (id > recorder::kTooManyId && type_of(name) == py.PyUnicode_Type &&
      py.PyUnicode_GetLength(name) <= kLongestCached) {
    Entry& entry = entries_[index_of(name)];
    Ref old(entry.name);
    entry = {new_reference(name), id};
  }
  return id;
}

void NameCache::forget() noexcept {
  std::memset(entries_, 0, sizeof(entries_));
}

}  // namespace shp::python
