// IdObjects: Python ints for span ids, made without allocating one a span.
//
// Sixteen ints go round. One that only this table refers to any more (its span
// ended and the caller's variable moved on) gets the new value in place; one
// that is still in use is left to its user and replaced. An int that is shared
// with nobody has no identity to spoil: hashes of ints are not cached, and they
// are not tracked by the collector.
//
// The layouts were checked against longintrepr.h of 3.8 … 3.14, and are tried
// out at import; where they do not hold, PyLong_FromLongLong does the work. GIL
// held throughout.
#pragma once

#include <cstdint>

#include "preload/python/cpython_api.h"

namespace shp::python {

enum class IntLayout {
  kSized,    // to 3.11: the word is the number of digits, negative for < 0
  kTagged,   // from 3.12: number of digits << 3, low bits are the sign
  kUnknown,  // use the API
};

// An int of up to three 30-bit digits; smaller ones are allocated shorter.
struct IntObject {
  PyObject head;
  uint64_t size;
  uint32_t digits[3];
};

template <IntLayout layout>
inline constexpr uint64_t int_size(uint64_t digits) {
  return layout == IntLayout::kTagged ? digits << 3 : digits;
}

// The value of any Python int; false (without an exception) for what is none.
// Values that are no span's id come out as -1.
bool read_int_slow(PyObject* object, int64_t& value) noexcept;

// The value of an int of the size that ids have; false for anything else.
template <IntLayout layout>
inline bool read_id(const PyObject* object, int64_t& value) noexcept {
  if (layout == IntLayout::kUnknown || object->ob_type != py.PyLong_Type) {
    return false;
  }
  const auto* number = reinterpret_cast<const IntObject*>(object);
  if (number->size == int_size<layout>(2)) [[likely]] {
    value = static_cast<int64_t>(uint64_t{number->digits[1]} << 30 |
                                 number->digits[0]);
    return true;
  }
  if (number->size == int_size<layout>(3) && number->digits[2] < 8) {
    value = static_cast<int64_t>(uint64_t{number->digits[2]} << 60 |
                                 uint64_t{number->digits[1]} << 30 |
                                 number->digits[0]);
    return true;
  }
  return false;
}

class IdObjects {
 public:
  // Fills the table; what layout this interpreter has.
  static IntLayout set_up() noexcept;
  // The interpreter has ended and its objects with it.
  static void forget() noexcept;

  // A new reference to an int of this value, which is an id or -1.
  template <IntLayout layout>
  static PyObject* make(int64_t id) noexcept {
    IntObject* number = ring_[next_++ % kCount];
    if (layout == IntLayout::kUnknown || id >> 30 <= 0 ||
        number->head.ob_refcnt != 1) [[unlikely]] {
      return make_unusual(id);
    }
    number->head.ob_refcnt = 2;
    const auto bits = static_cast<uint64_t>(id);
    number->digits[0] = static_cast<uint32_t>(bits & kDigit);
    number->digits[1] = static_cast<uint32_t>(bits >> 30 & kDigit);
    number->digits[2] = static_cast<uint32_t>(bits >> 60);
    number->size = int_size<layout>(bits >> 60 == 0 ? 2 : 3);
    return &number->head;
  }

 private:
  static constexpr uint32_t kCount = 16;
  static constexpr uint64_t kDigit = (1U << 30) - 1;

  // Small ones, and those whose turn finds an int that is in use.
  [[gnu::noinline, gnu::cold]] static PyObject* make_unusual(
      int64_t id) noexcept;
  static bool replace(uint32_t index) noexcept;

  static IntObject* ring_[kCount];
  static uint32_t next_;
};

}  // namespace shp::python
