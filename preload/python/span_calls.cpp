#include "preload/python/span_calls.h"

#include <cstdio>

#include "preload/python/arguments.h"
#include "preload/python/json_encoder.h"
#include "preload/python/text.h"

namespace shp::python {

using recorder::EndArgs;
using recorder::SpanId;

SpanId refuse_name(PyObject* name) noexcept {
  char reason[120];
  const char* what = "it holds NUL";
  if (!is_a(name, kTypeIsStr)) {
    std::snprintf(
        reason, sizeof(reason), "it is of type %s", type_of(name)->tp_name);
    what = reason;
  } else if (py.PyUnicode_GetLength(name) == 0) {
    what = "it is empty";
  }
  spans().bad_names.note(what);
  return recorder::refuse_name();
}

SpanId start_unattached(PyObject* name, PyObject* attrs) noexcept {
  if (!recorder::g_process.starts_by_itself ||
      recorder::g_wiped.by_itself.load(std::memory_order_relaxed) ==
          recorder::kTried) {
    return recorder::kNotRecorded;
  }
  uint32_t generation = 0;
  {
    // The first of them may have to wait for a daemon to start.
    const WithoutGil others_run;
    generation = recorder::start_by_itself();
  }
  return generation != 0 ? start_span(name, attrs) : recorder::kNotRecorded;
}

void hold_attrs(SpanId id, PyObject* attrs) noexcept {
  if (id >= 0 && !spans().held.put(id, recorder::t_state, Ref::borrow(attrs))) {
    spans().bad_args.note("out of memory");
  }
}

namespace {

// Whether stop() has to ask somebody for the values.
bool has_callable(PyObject* dict) noexcept {
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (py.PyDict_Next(dict, &position, &key, &value) != 0) {
    const PyTypeObject* type = type_of(value);
    if (type != py.PyUnicode_Type && type != py.PyLong_Type &&
        type != py.PyFloat_Type && py.PyCallable_Check(value) != 0) {
      return true;
    }
  }
  return false;
}

void end_bad(SpanId id, std::string_view reason, uint64_t now) noexcept {
  EndArgs args;
  args.end_ticks = now;
  args.bad = true;
  if (recorder::end_with_args(id, args)) {
    spans().bad_args.note(reason);
  }
}

void end_deferred(SpanId id, Ref attrs, uint64_t now) noexcept {
  if (!spans().has_room()) {
    end_bad(id, "too many callables wait to be asked", now);
    return;
  }
  EndArgs args;
  args.end_ticks = now;
  args.deferred = spans().next_key();
  if (recorder::end_with_args(id, args) && !spans().defer(std::move(attrs))) {
    spans().bad_args.note("out of memory");
  }
}

void end_encoded(SpanId id, PyObject* dict, uint64_t now) noexcept {
  JsonEncoder encoder;
  if (!encoder.encode(dict)) {
    end_bad(id, encoder.reason(), now);
    return;
  }
  EndArgs args;
  args.end_ticks = now;
  if (encoder.text().size() > 2) {  // "{}" is what no args come to
    args.json = encoder.text();
  }
  recorder::end_with_args(id, args);
}

}  // namespace

bool end_with_attrs(SpanId id) noexcept {
  recorder::ThreadState* thread = recorder::t_state;
  if (id < 0 || thread == nullptr || recorder::recording() == 0) {
    return true;
  }
  const uint64_t now = recorder::stamp(*thread);
  Ref attrs = spans().held.take(id, thread);
  if (!attrs) {
    recorder::end(id);
    return true;
  }
  const bool is_dict = is_a(attrs.get(), kTypeIsDict);
  if (py.PyCallable_Check(attrs.get()) != 0 ||
      (is_dict && has_callable(attrs.get()))) {
    end_deferred(id, std::move(attrs), now);
  } else if (is_dict) {
    end_encoded(id, attrs.get(), now);
  } else {
    char reason[120];
    std::snprintf(reason,
                  sizeof(reason),
                  "attrs must be a dict, a callable or None, not %s",
                  type_of(attrs.get())->tp_name);
    end_bad(id, reason, now);
  }
  return py.PyErr_Occurred() == nullptr;
}

namespace {

constexpr Signature kSpanStart{"span_start", {"name", "attrs"}, 2, 1, 2};
constexpr Signature kSpanEnd{"span_end", {"span_id"}, 1, 1, 1};

template <IntLayout layout>
PyObject* id_object(SpanId id) noexcept {
  return IdObjects::make<layout>(id);
}

// None: a counted reference up to 3.11, immortal from 3.12.
template <IntLayout layout>
PyObject* quick_none() noexcept {
  if constexpr (layout == IntLayout::kSized) {
    ++py._Py_NoneStruct->ob_refcnt;
    return py._Py_NoneStruct;
  }
  return none();
}

// Everything but one name or one id, given by position, while a session runs:
// kept out of line so that the usual call saves no registers for it.

template <IntLayout layout>
[[gnu::noinline, gnu::cold]] PyObject* span_start_unusual(
    PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
  PyObject* parsed[3];
  if (!parse_arguments(kSpanStart, args, count, keywords, parsed)) {
    return nullptr;
  }
  return id_object<layout>(start_span(parsed[0], parsed[1]));
}

template <IntLayout layout>
[[gnu::noinline]] PyObject* span_start_with_attrs(PyObject* name,
                                                  PyObject* attrs) noexcept {
  return id_object<layout>(start_span(name, attrs));
}

// Nothing records, or this session has not met the name yet.
template <IntLayout layout>
[[gnu::noinline]] PyObject* span_start_uncached(PyObject* name) noexcept {
  if (recorder::recording() == 0 && !recorder::g_process.starts_by_itself) {
    return py.PyLong_FromLongLong(recorder::kNotRecorded);
  }
  return id_object<layout>(start_span(name, nullptr));
}

template <IntLayout layout>
PyObject* span_start(PyObject*,
                     PyObject* const* args,
                     Py_ssize_t count,
                     PyObject* keywords) noexcept {
  if (SHP_LIKELY(keywords == nullptr && count == 1)) {
    const uint32_t generation = recorder::recording();
    const uint32_t name_id = NameCache::cached_id_of(args[0]);
    if (SHP_LIKELY(generation != 0 && name_id != kNoName)) {
      return id_object<layout>(recorder::begin(name_id, generation));
    }
    return span_start_uncached<layout>(args[0]);
  }
  if (keywords == nullptr && count == 2) {
    return span_start_with_attrs<layout>(args[0], args[1]);
  }
  return span_start_unusual<layout>(args, count, keywords);
}

[[gnu::noinline, gnu::cold]] PyObject* span_end_unusual(
    PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
  if (keywords == nullptr && count == 1 && recorder::recording() == 0) {
    return none();
  }
  PyObject* object = nullptr;
  if (!parse_arguments(kSpanEnd, args, count, keywords, &object)) {
    return nullptr;
  }
  int64_t id = recorder::kNotRecorded;
  if (!read_int_slow(object, id) && recorder::recording() != 0) {
    return py.PyErr_Format(*py.PyExc_TypeError,
                           "span_id must be an int, not %.100s",
                           type_of(object)->tp_name);
  }
  return end_span(id) ? none() : nullptr;
}

[[gnu::noinline]] PyObject* span_end_with_attrs(SpanId id) noexcept {
  return end_with_attrs(id) ? none() : nullptr;
}

template <IntLayout layout>
PyObject* span_end(PyObject*,
                   PyObject* const* args,
                   Py_ssize_t count,
                   PyObject* keywords) noexcept {
  int64_t id = recorder::kNotRecorded;
  if (SHP_UNLIKELY(keywords != nullptr || count != 1 ||
                   !read_id<layout>(args[0], id))) {
    return span_end_unusual(args, count, keywords);
  }
  if (SHP_UNLIKELY(!spans().held.empty())) {
    return span_end_with_attrs(id);
  }
  recorder::end(id);
  return quick_none<layout>();
}

}  // namespace

PyMethodDef span_start_method(IntLayout layout) noexcept {
  const PyCFunctionFastWithKeywords function =
      layout == IntLayout::kSized    ? span_start<IntLayout::kSized>
      : layout == IntLayout::kTagged ? span_start<IntLayout::kTagged>
                                     : span_start<IntLayout::kUnknown>;
  return {"span_start",
          reinterpret_cast<void*>(function),
          kMethodFastKeywords,
          "span_start(name, attrs=None)\n--\n\n"
          "Start a span; return its id, -1 when nothing is recorded."};
}

PyMethodDef span_end_method(IntLayout layout) noexcept {
  const PyCFunctionFastWithKeywords function =
      layout == IntLayout::kSized    ? span_end<IntLayout::kSized>
      : layout == IntLayout::kTagged ? span_end<IntLayout::kTagged>
                                     : span_end<IntLayout::kUnknown>;
  return {"span_end",
          reinterpret_cast<void*>(function),
          kMethodFastKeywords,
          "span_end(span_id)\n--\n\n"
          "End a span of this thread; -1 and ended ones do nothing."};
}

}  // namespace shp::python
