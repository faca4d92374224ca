#include "preload/python/held_attrs.h"

#include <cstdlib>
#include <utility>

namespace shp::python {

bool HeldAttrs::put(int64_t id, const void* thread, Ref attrs) noexcept {
  if ((count_ + 1) * 2 > mask_ && !grow()) {
    return false;
  }
  insert({key_of(id), thread, attrs.release()});
  ++count_;
  return true;
}

void HeldAttrs::insert(const Entry& entry) noexcept {
  uint32_t index = home_of(entry.key);
  while (entries_[index].key != 0) {
    index = (index + 1) & mask_;
  }
  entries_[index] = entry;
}

Ref HeldAttrs::take(int64_t id, const void* thread) noexcept {
  if (count_ == 0) {
    return Ref();
  }
  const int64_t key = key_of(id);
  uint32_t index = home_of(key);
  for (; entries_[index].key != 0; index = (index + 1) & mask_) {
    if (entries_[index].key == key) {
      if (entries_[index].thread != thread) {
        return Ref();
      }
      Ref attrs(entries_[index].attrs);
      remove(index);
      return attrs;
    }
  }
  return Ref();
}

// Closes the gap: entries behind it that would no longer be found from their
// home move up.
void HeldAttrs::remove(uint32_t index) noexcept {
  --count_;
  uint32_t gap = index;
  for (uint32_t next = (gap + 1) & mask_; entries_[next].key != 0;
       next = (next + 1) & mask_) {
    const uint32_t home = home_of(entries_[next].key);
    if (((next - home) & mask_) >= ((next - gap) & mask_)) {
      entries_[gap] = entries_[next];
      gap = next;
    }
  }
  entries_[gap] = {};
}

bool HeldAttrs::grow() noexcept {
  const uint32_t size = mask_ == 0 ? 64 : (mask_ + 1) * 2;
  auto* bigger = static_cast<Entry*>(std::calloc(size, sizeof(Entry)));
  if (bigger == nullptr || size == 0) {
    std::free(bigger);
    return false;
  }
  Entry* old = std::exchange(entries_, bigger);
  const uint32_t old_size = mask_ == 0 ? 0 : mask_ + 1;
  mask_ = size - 1;
  for (uint32_t i = 0; i < old_size; ++i) {
    if (old[i].key != 0) {
      insert(old[i]);
    }
  }
  std::free(old);
  return true;
}

void HeldAttrs::clear() noexcept {
  Entry* old = std::exchange(entries_, nullptr);
  const uint32_t old_size = mask_ == 0 ? 0 : mask_ + 1;
  mask_ = 0;
  count_ = 0;
  for (uint32_t i = 0; i < old_size; ++i) {
    if (old[i].key != 0) {
      py.Py_DecRef(old[i].attrs);
    }
  }
  std::free(old);
}

void HeldAttrs::forget() noexcept {
  std::free(std::exchange(entries_, nullptr));
  mask_ = 0;
  count_ = 0;
}

}  // namespace shp::python
