#include "preload/python/call_events.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdlib>

#include "preload/python/mark_calls.h"
#include "preload/python/span_calls.h"

namespace shp::python {
namespace {

struct TracedCode {
  PyObject* code;  // owned, so that its address stays its own; null: free
  uint32_t name;
  PyObject* capture;  // owned, or null
  PyObject* after;    // owned, or null
};

// Open addressing by address, at most half full.
struct Table {
  TracedCode* entries;
  uint32_t mask;
  uint32_t count;
};
constinit Table g_table{};

uint32_t home_of(const PyObject* code) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(code);
  return static_cast<uint32_t>(address >> 4 ^ address >> 14) & g_table.mask;
}

// The code's entry, or the free one where it would go; never null once the
// table is there.
TracedCode* slot_of(const PyObject* code) noexcept {
  for (uint32_t i = home_of(code);; i = (i + 1) & g_table.mask) {
    TracedCode& entry = g_table.entries[i];
    if (SHP_LIKELY(entry.code == code) || entry.code == nullptr) {
      return &entry;
    }
  }
}

const TracedCode* traced(const PyObject* code) noexcept {
  if (SHP_UNLIKELY(g_table.entries == nullptr)) {
    return nullptr;
  }
  const TracedCode* entry = slot_of(code);
  return entry->code != nullptr ? entry : nullptr;
}

bool grow() noexcept {
  const Table old = g_table;
  const uint32_t size = old.entries == nullptr ? 64 : (old.mask + 1) * 2;
  auto* entries =
      static_cast<TracedCode*>(std::calloc(size, sizeof(TracedCode)));
  if (entries == nullptr) {
    return false;
  }
  g_table = {entries, size - 1, old.count};
  for (uint32_t i = 0; old.entries != nullptr && i <= old.mask; ++i) {
    if (old.entries[i].code != nullptr) {
      *slot_of(old.entries[i].code) = old.entries[i];
    }
  }
  std::free(old.entries);
  return true;
}

// ---- a thread's open calls --------------------------------------------------

struct OpenCall {
  const PyObject* code;
  recorder::SpanId id;
};

}  // namespace
}  // namespace shp::python

namespace shp::recorder {

struct CallStack {
  uint32_t depth;
  python::OpenCall calls[(kCallStackBytes - 16) / sizeof(python::OpenCall)];
};
static_assert(sizeof(CallStack) <= kCallStackBytes);

}  // namespace shp::recorder

namespace shp::python {
namespace {

using recorder::CallStack;

constexpr uint32_t kMostCalls =
    sizeof(CallStack::calls) / sizeof(CallStack::calls[0]);

[[gnu::noinline, gnu::cold]] CallStack* map_calls() noexcept {
  void* at = mmap(nullptr,
                  recorder::kCallStackBytes,
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1,
                  0);
  recorder::t_state->calls =
      at == MAP_FAILED ? nullptr : static_cast<CallStack*>(at);
  return recorder::t_state->calls;
}

// A span that is too deep to be remembered, and the like: it stays open, and
// is counted as unfinished.
void push(const PyObject* code, recorder::SpanId id) noexcept {
  CallStack* stack = recorder::t_state->calls;
  if (SHP_UNLIKELY(stack == nullptr)) {
    stack = map_calls();
  }
  if (SHP_LIKELY(stack != nullptr && stack->depth < kMostCalls)) {
    stack->calls[stack->depth++] = {code, id};
  }
}

// The latest open call of `code`, taken off the stack; kNotRecorded: none. It
// is on top but for greenlets and the like, whose calls do not nest.
recorder::SpanId pop(const PyObject* code) noexcept {
  CallStack* stack =
      recorder::t_state != nullptr ? recorder::t_state->calls : nullptr;
  if (stack == nullptr || stack->depth == 0) {
    return recorder::kNotRecorded;
  }
  uint32_t at = stack->depth - 1;
  while (SHP_UNLIKELY(stack->calls[at].code != code)) {
    if (at == 0) {
      return recorder::kNotRecorded;
    }
    --at;
  }
  const recorder::SpanId id = stack->calls[at].id;
  for (--stack->depth; SHP_UNLIKELY(at < stack->depth); ++at) {
    stack->calls[at] = stack->calls[at + 1];
  }
  return id;
}

// ---- captures ---------------------------------------------------------------

struct FrameApi {
  PyObject* (*current)();          // PyEval_GetFrame: borrowed
  PyObject* (*locals)(PyObject*);  // PyFrame_GetLocals: new
};

const FrameApi& frame_api() noexcept {
  // Both are there from 3.11 on, and this is for 3.12.
  static const FrameApi api{
      reinterpret_cast<PyObject* (*)()>(dlsym(RTLD_DEFAULT, "PyEval_GetFrame")),
      reinterpret_cast<PyObject* (*)(PyObject*)>(
          dlsym(RTLD_DEFAULT, "PyFrame_GetLocals"))};
  return api;
}

// `callable(locals of the traced function)`; it catches its own errors, and
// what gets through all the same (Ctrl-C) stays pending.
Ref ask(PyObject* callable) noexcept {
  const FrameApi& api = frame_api();
  PyObject* frame =
      api.current != nullptr && api.locals != nullptr ? api.current() : nullptr;
  const Ref locals(frame != nullptr ? api.locals(frame) : nullptr);
  PyObject* argument = locals.get();
  return locals ? Ref(call(callable, &argument, 1, nullptr)) : Ref();
}

[[gnu::noinline]] void capture(PyObject* callable,
                               recorder::SpanId id) noexcept {
  const Ref attrs = ask(callable);
  if (attrs && attrs.get() != py._Py_NoneStruct) {
    hold_attrs(id, attrs.get());
  }
}

PyObject* done() noexcept {
  return py.PyErr_Occurred() == nullptr ? none() : nullptr;
}

PyObject* begin_call(PyObject* code, bool with_capture) noexcept {
  const uint32_t generation = generation_or_start();
  const TracedCode* entry = generation != 0 ? traced(code) : nullptr;
  if (SHP_UNLIKELY(entry == nullptr)) {
    return none();
  }
  const recorder::SpanId id = recorder::begin(entry->name, generation);
  if (SHP_UNLIKELY(id == recorder::kNotRecorded)) {
    return none();
  }
  push(code, id);
  if (SHP_UNLIKELY(with_capture && entry->capture != nullptr)) {
    capture(entry->capture, id);
    return done();
  }
  return none();
}

Ref optional_callable(PyObject* object) noexcept {
  return object == py._Py_NoneStruct ? Ref() : Ref::borrow(object);
}

}  // namespace

PyObject* trace_code(PyObject*,
                     PyObject* const* args,
                     Py_ssize_t count,
                     PyObject*) noexcept {
  if (count != 4) {
    return py.PyErr_Format(*py.PyExc_TypeError,
                           "trace_code(code, name, capture, after)");
  }
  const uint32_t name = NameCache::id_of(args[1]);
  const bool room =
      g_table.entries != nullptr && g_table.count * 2 <= g_table.mask;
  if (name == kNoName || (!room && !grow())) {
    return py.PyErr_Format(*py.PyExc_ValueError, "no name for a span");
  }
  TracedCode* entry = slot_of(args[0]);
  if (entry->code == nullptr) {
    entry->code = new_reference(args[0]);
    ++g_table.count;
  }
  entry->name = name;
  const Ref old_capture(entry->capture);
  const Ref old_after(entry->after);
  entry->capture = optional_callable(args[2]).release();
  entry->after = optional_callable(args[3]).release();
  return none();
}

PyObject* on_call_begin(PyObject*,
                        PyObject* const* args,
                        Py_ssize_t,
                        PyObject*) noexcept {
  return begin_call(args[0], true);
}

PyObject* on_call_resume(PyObject*,
                         PyObject* const* args,
                         Py_ssize_t,
                         PyObject*) noexcept {
  return begin_call(args[0], false);
}

PyObject* on_call_return(PyObject*,
                         PyObject* const* args,
                         Py_ssize_t,
                         PyObject*) noexcept {
  const recorder::SpanId id = pop(args[0]);
  if (SHP_UNLIKELY(id == recorder::kNotRecorded)) {
    return none();
  }
  const bool ended = end_span(id);
  const TracedCode* entry = traced(args[0]);
  if (SHP_UNLIKELY(entry != nullptr && entry->after != nullptr) && ended) {
    const Ref asked = ask(entry->after);
    return done();
  }
  return ended ? none() : nullptr;
}

// A yield; or an exception, which the interpreter has set aside for this.
PyObject* on_call_leave(PyObject*,
                        PyObject* const* args,
                        Py_ssize_t,
                        PyObject*) noexcept {
  const recorder::SpanId id = pop(args[0]);
  return id == recorder::kNotRecorded || end_span(id) ? none() : nullptr;
}

void forget_calls() noexcept {
  std::free(g_table.entries);
  g_table = {};
}

}  // namespace shp::python
