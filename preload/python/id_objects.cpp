#include "preload/python/id_objects.h"

#include <cstring>

namespace shp::python {

IntObject* IdObjects::ring_[kCount];
uint32_t IdObjects::next_;

namespace {

constexpr long long kProbe = 0x5123'4567'89ab'cdef;

template <IntLayout layout>
bool layout_holds() noexcept {
  Ref three(py.PyLong_FromLongLong(kProbe));
  Ref two(py.PyLong_FromLongLong(kProbe & 0x0fff'ffff'ffff));
  if (!three || !two) {
    py.PyErr_Clear();
    return false;
  }
  IntObject number;
  std::memcpy(&number, three.get(), sizeof(PyObject) + 20);
  int64_t back = 0;
  return number.head.ob_refcnt == 1 && number.size == int_size<layout>(3) &&
         reinterpret_cast<IntObject*>(two.get())->size == int_size<layout>(2) &&
         read_id<layout>(three.get(), back) && back == kProbe &&
         read_id<layout>(two.get(), back) &&
         back == (kProbe & 0x0fff'ffff'ffff);
}

}  // namespace

bool read_int_slow(PyObject* object, int64_t& value) noexcept {
  if (!is_a(object, kTypeIsLong)) {
    return false;
  }
  int overflow = 0;
  value = py.PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) {
    value = -1;
  }
  return true;
}

IntLayout IdObjects::set_up() noexcept {
  const IntLayout layout = layout_holds<IntLayout::kSized>() ? IntLayout::kSized
                           : layout_holds<IntLayout::kTagged>()
                               ? IntLayout::kTagged
                               : IntLayout::kUnknown;
  for (uint32_t i = 0; layout != IntLayout::kUnknown && i < kCount; ++i) {
    if (ring_[i] == nullptr && !replace(i)) {
      return IntLayout::kUnknown;
    }
  }
  return layout;
}

void IdObjects::forget() noexcept {
  std::memset(ring_, 0, sizeof(ring_));
}

// A fresh int of three digits, so that any id fits; the old one goes on for
// whoever holds it.
bool IdObjects::replace(uint32_t index) noexcept {
  PyObject* fresh = py.PyLong_FromLongLong(kProbe);
  if (fresh == nullptr) {
    py.PyErr_Clear();
    return false;
  }
  const Ref old(ring_[index] == nullptr ? nullptr : &ring_[index]->head);
  ring_[index] = reinterpret_cast<IntObject*>(fresh);
  return true;
}

// The place whose turn it was is ready for the next round.
PyObject* IdObjects::make_unusual(int64_t id) noexcept {
  const uint32_t index = (next_ - 1) % kCount;
  if (ring_[index] != nullptr && ring_[index]->head.ob_refcnt != 1) {
    replace(index);
  }
  return py.PyLong_FromLongLong(id);
}

}  // namespace shp::python
