#include "preload/python/span_state.h"

#include <cstring>
#include <new>
#include <utility>

namespace shp::python {

constinit ImmortalSpanState g_span_state;

void Misuse::note(std::string_view reason) noexcept {
  if (count++ == 0) {
    const size_t bytes = reason.copy(first, sizeof(first) - 1);
    first[bytes] = '\0';
  }
}

bool SpanState::defer(Ref attrs) noexcept {
  try {
    deferred_.push_back({last_key_ + 1, attrs.get()});
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++last_key_;
  static_cast<void>(attrs.release());
  return true;
}

std::vector<Deferred> SpanState::take_deferred() noexcept {
  return std::exchange(deferred_, {});
}

void SpanState::clear() noexcept {
  asked_for = false;
  last_key_ = 0;
  bad_args = {};
  bad_names = {};
  bad_marks = {};
  held.clear();
  for (const Deferred& one : take_deferred()) {
    py.Py_DecRef(one.attrs);
  }
}

void SpanState::forget() noexcept {
  asked_for = false;
  last_key_ = 0;
  bad_args = {};
  bad_names = {};
  bad_marks = {};
  held.forget();
  deferred_.clear();
}

}  // namespace shp::python
