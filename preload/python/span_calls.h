// Span calls as Python makes them: from objects to the recorder's begin and
// end. span_start and span_end are METH_FASTCALL functions; `span` and
// `profile` (span_type.cpp, profiled_type.cpp) use start_span and end_span.
//
// GIL held, on any thread. A span's cost is in this header: the name's id by
// the object's address, the recorder's inline half, an int that is reused.
#pragma once

#include "preload/python/cpython_api.h"
#include "preload/python/id_objects.h"
#include "preload/python/name_cache.h"
#include "preload/python/span_state.h"
#include "preload/recorder.h"

namespace shp::python {

// ---- rare paths, span_calls.cpp ---------------------------------------------

// Nothing records: starts a session first where SHP_OUTPUT_DIR asks for one.
recorder::SpanId start_unattached(PyObject* name, PyObject* attrs) noexcept;
// The name is no name: counted, to be warned of at stop().
recorder::SpanId refuse_name(PyObject* name) noexcept;
// Keeps the attributes until the span ends.
void hold_attrs(recorder::SpanId id, PyObject* attrs) noexcept;
// Ends a span that may have attributes. False: an exception is pending, which
// none of the attributes' faults is (a Ctrl-C while they were encoded).
bool end_with_attrs(recorder::SpanId id) noexcept;

// ---- the usual path ---------------------------------------------------------

// `attrs` may be nullptr or None. Never raises; -1 when nothing records.
inline recorder::SpanId start_span(PyObject* name, PyObject* attrs) noexcept {
  const uint32_t generation = recorder::recording();
  if (SHP_UNLIKELY(generation == 0)) {
    return start_unattached(name, attrs);
  }
  const uint32_t name_id = NameCache::id_of(name);
  if (SHP_UNLIKELY(name_id == kNoName)) {
    return refuse_name(name);
  }
  const recorder::SpanId id = recorder::begin(name_id, generation);
  if (attrs != nullptr && attrs != py._Py_NoneStruct) {
    hold_attrs(id, attrs);
  }
  return id;
}

// See end_with_attrs. No exception may be pending.
inline bool end_span(recorder::SpanId id) noexcept {
  if (SHP_UNLIKELY(!spans().held.empty())) {
    return end_with_attrs(id);
  }
  recorder::end(id);
  return true;
}

// span_start(name, attrs=None) and span_end(span_id) for this interpreter's
// ints.
PyMethodDef span_start_method(IntLayout layout) noexcept;
PyMethodDef span_end_method(IntLayout layout) noexcept;

}  // namespace shp::python
