// HeldAttrs: the attributes of open spans, by span id, from span_start to
// span_end. A hash table with open addressing; GIL held.
//
// An entry is taken by the thread that made it only: a foreign id does nothing.
// Spans that never end leave theirs here until the session is over.
#pragma once

#include <cstdint>

#include "preload/python/cpython_api.h"

namespace shp::python {

class HeldAttrs {
 public:
  bool empty() const noexcept { return count_ == 0; }
  uint32_t count() const noexcept { return count_; }

  // False without memory; the reference is dropped then.
  bool put(int64_t id, const void* thread, Ref attrs) noexcept;
  // The attributes of `id`, no longer held; empty when there are none, or they
  // are another thread's.
  Ref take(int64_t id, const void* thread) noexcept;
  // Drops everything; what dies may call back into here.
  void clear() noexcept;
  // The same without touching the objects: their interpreter has ended.
  void forget() noexcept;

 private:
  struct Entry {
    int64_t key;  // 0: free, see key_of
    const void* thread;
    PyObject* attrs;
  };

  // 0 marks a free entry, and 0 may be an id.
  static int64_t key_of(int64_t id) noexcept { return id + 1; }
  uint32_t home_of(int64_t key) const noexcept {
    return static_cast<uint32_t>(
               static_cast<uint64_t>(key) * 0x9e37'79b9'7f4a'7c15U >> 40) &
           mask_;
  }
  void insert(const Entry& entry) noexcept;
  void remove(uint32_t index) noexcept;
  bool grow() noexcept;

  Entry* entries_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t count_ = 0;
};

}  // namespace shp::python
