// NameCache: from a Python str to its name id (preload/names.h) by the object's
// address. An entry holds a reference, so the address stays that str's as long
// as the entry lives, and strs do not change. Direct-mapped, GIL held.
//
// Only exact strs of up to kLongestCached characters are kept: the table must
// not hold on to much of the program's memory.
#pragma once

#include <cstdint>

#include "preload/names.h"
#include "preload/python/cpython_api.h"

namespace shp::python {

class NameCache {
 public:
  // The name's id; kNoName when it is no str, empty, or holds NUL.
  static uint32_t id_of(PyObject* name) noexcept {
    const Entry& entry = entries_[index_of(name)];
    if (entry.name == name) [[likely]] {
      return entry.id;
    }
    return look_up(name);
  }

  // The same for a name that was seen before, kNoName for any other.
  static uint32_t cached_id_of(const PyObject* name) noexcept {
    const Entry& entry = entries_[index_of(name)];
    return entry.name == name ? entry.id : kNoName;
  }

  // The interpreter has ended and its objects with it.
  static void forget() noexcept;

 private:
  struct Entry {
    PyObject* name;
    uint32_t id;
  };
  static constexpr uint32_t kEntries = 512;
  static constexpr Py_ssize_t kLongestCached = 256;

  static uint32_t index_of(const PyObject* name) noexcept {
    const auto address = reinterpret_cast<uintptr_t>(name);
    return static_cast<uint32_t>(address >> 4 ^ address >> 13) % kEntries;
  }
  static uint32_t look_up(PyObject* name) noexcept;

  static Entry entries_[kEntries];
};

}  // namespace shp::python
