#include <cstdlib>

#include "preload/python/arguments.h"
#include "preload/python/span_calls.h"
#include "preload/python/types.h"

namespace shp::python {
namespace {

using recorder::SpanId;

struct SpanObject {
  PyObject head;
  PyObject* name;
  PyObject* attrs;  // may be nullptr
  SpanId* outer;    // ids of entries below the innermost, malloc'ed
  uint32_t depth;   // entries that are open
  uint32_t room;
  SpanId innermost;
};

PyTypeObject* g_type = nullptr;

SpanObject* span_of(PyObject* self) noexcept {
  return reinterpret_cast<SpanObject*>(self);
}

constexpr Signature kSpan{"span", {"name", "attrs"}, 2, 1, 2};

// Entered while open: keeps the outer id. False without memory.
bool push_outer(SpanObject& span) noexcept {
  const uint32_t outer = span.depth - 1;
  if (outer == span.room) {
    const uint32_t room = span.room == 0 ? 8 : span.room * 2;
    void* bigger = std::realloc(span.outer, room * sizeof(SpanId));
    if (bigger == nullptr) {
      return false;
    }
    span.outer = static_cast<SpanId*>(bigger);
    span.room = room;
  }
  span.outer[outer] = span.innermost;
  return true;
}

PyObject* enter(PyObject* self, PyObject*) noexcept {
  SpanObject& span = *span_of(self);
  if (span.depth != 0 && !push_outer(span)) {
    return py.PyErr_NoMemory();
  }
  ++span.depth;
  span.innermost = start_span(span.name, span.attrs);
  return new_reference(self);
}

PyObject* leave(PyObject* self,
                PyObject* const*,
                Py_ssize_t,
                PyObject*) noexcept {
  SpanObject& span = *span_of(self);
  if (span.depth == 0) {
    return none();
  }
  const SpanId id = span.innermost;
  --span.depth;
  span.innermost =
      span.depth == 0 ? recorder::kNotRecorded : span.outer[span.depth - 1];
  return end_span(id) ? none() : nullptr;
}

// As a decorator: profile(name, attrs)(function).
PyObject* decorate(PyObject* self, PyObject* args, PyObject*) noexcept {
  if (py.PyTuple_Size(args) != 1) {
    return py.PyErr_Format(*py.PyExc_TypeError,
                           "a span decorates one function");
  }
  const Ref module(
      py.PyImport_ImportModule("service_host_profiling.collector"));
  const Ref profile(module ? py.PyObject_GetAttrString(module.get(), "profile")
                           : nullptr);
  const SpanObject& span = *span_of(self);
  PyObject* words[] = {span.name,
                       span.attrs != nullptr ? span.attrs : py._Py_NoneStruct};
  const Ref decorator(profile ? call(profile.get(), words, 2, nullptr)
                              : nullptr);
  PyObject* function = py.PyTuple_GetItem(args, 0);
  return decorator ? call(decorator.get(), &function, 1, nullptr) : nullptr;
}

PyObject* get_attrs(PyObject* self, void*) noexcept {
  PyObject* attrs = span_of(self)->attrs;
  return attrs != nullptr ? new_reference(attrs) : none();
}

// Counts for the innermost entry that is open, and for later ones.
int set_attrs(PyObject* self, PyObject* attrs, void*) noexcept {
  SpanObject& span = *span_of(self);
  const Ref old(span.attrs);
  span.attrs = attrs != nullptr ? new_reference(attrs) : nullptr;
  if (span.innermost >= 0) {
    const Ref held = spans().held.take(span.innermost, recorder::t_state);
    if (attrs != nullptr && attrs != py._Py_NoneStruct) {
      hold_attrs(span.innermost, attrs);
    }
  }
  return 0;
}

PyObject* get_name(PyObject* self, void*) noexcept {
  return new_reference(span_of(self)->name);
}

int traverse(PyObject* self, visitproc visit, void* data) noexcept {
  SpanObject& span = *span_of(self);
  // From 3.9 on the collector counts an instance's reference to its type.
  PyObject* type =
      py.minor >= 9 ? reinterpret_cast<PyObject*>(type_of(self)) : nullptr;
  for (PyObject* object : {type, span.name, span.attrs}) {
    if (object != nullptr) {
      if (const int stop = visit(object, data); stop != 0) {
        return stop;
      }
    }
  }
  return 0;
}

int clear(PyObject* self) noexcept {
  SpanObject& span = *span_of(self);
  Ref attrs(span.attrs);
  span.attrs = nullptr;
  return 0;
}

void deallocate(PyObject* self) noexcept {
  py.PyObject_GC_UnTrack(self);
  SpanObject& span = *span_of(self);
  clear(self);
  Ref name(span.name);
  std::free(span.outer);
  const Ref type(reinterpret_cast<PyObject*>(type_of(self)));
  py.PyObject_GC_Del(self);
}

PyMethodDef g_methods[] = {
    {"__enter__", reinterpret_cast<void*>(&enter), kMethodNoArgs, nullptr},
    {"__exit__", reinterpret_cast<void*>(&leave), kMethodFastKeywords, nullptr},
    {}};

PyGetSetDef g_getset[] = {
    {"name",
     reinterpret_cast<void*>(&get_name),
     nullptr,
     "The span's name.",
     nullptr},
    {"attrs",
     reinterpret_cast<void*>(&get_attrs),
     reinterpret_cast<void*>(&set_attrs),
     "Attributes, as span_start takes them; read when the span ends.",
     nullptr},
    {}};

// Types are made of what `span` returns only.
PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) noexcept {
  py.PyErr_SetString(*py.PyExc_TypeError, "use service_host_profiling.span()");
  return nullptr;
}

PyType_Slot g_slots[] = {
    {kSlotMethods, g_methods},
    {kSlotGetset, g_getset},
    {kSlotCall, reinterpret_cast<void*>(&decorate)},
    {kSlotTraverse, reinterpret_cast<void*>(&traverse)},
    {kSlotClear, reinterpret_cast<void*>(&clear)},
    {kSlotDealloc, reinterpret_cast<void*>(&deallocate)},
    {kSlotNew, reinterpret_cast<void*>(&refuse_new)},
    {kSlotDoc, const_cast<char*>("A named span around a block of code.")},
    {}};

PyType_Spec g_spec{"service_host_profiling._native.Span",
                   sizeof(SpanObject),
                   0,
                   kTypeDefault | kTypeHaveGc,
                   g_slots};

}  // namespace

PyObject* make_span_type() noexcept {
  if (g_type == nullptr) {
    g_type = reinterpret_cast<PyTypeObject*>(py.PyType_FromSpec(&g_spec));
  }
  return g_type == nullptr ? nullptr
                           : new_reference(reinterpret_cast<PyObject*>(g_type));
}

PyObject* new_span(PyObject*,
                   PyObject* const* args,
                   Py_ssize_t count,
                   PyObject* keywords) noexcept {
  PyObject* parsed[3];
  if (!parse_arguments(kSpan, args, count, keywords, parsed)) {
    return nullptr;
  }
  PyObject* self = py.PyType_GenericAlloc(g_type, 0);
  if (self == nullptr) {
    return nullptr;
  }
  SpanObject& span = *span_of(self);
  span.name = new_reference(parsed[0]);
  span.attrs = parsed[1] != nullptr ? new_reference(parsed[1]) : nullptr;
  span.innermost = recorder::kNotRecorded;
  return self;
}

void forget_types() noexcept {
  g_type = nullptr;
}

}  // namespace shp::python
