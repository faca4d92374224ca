#include "preload/python/mark_calls.h"

#include <cmath>
#include <cstdio>

#include "preload/marks.h"
#include "preload/python/arguments.h"
#include "preload/python/json_encoder.h"
#include "preload/python/name_cache.h"
#include "preload/python/span_state.h"

namespace shp::python {
namespace {

constexpr Signature kInstant{"instant", {"name", "attrs"}, 2, 1, 2};
constexpr Signature kCounter{"counter", {"name", "value"}, 2, 2, 2};

// Whether the call may return None: an interruption of the program's own is
// pending otherwise.
PyObject* done() noexcept {
  return py.PyErr_Occurred() == nullptr ? none() : nullptr;
}

void refuse(const char* reason) noexcept {
  spans().bad_marks.note(reason);
  recorder::refuse_mark();
}

// The name's id; kNoName: refused.
uint32_t id_of(PyObject* name) noexcept {
  const uint32_t id = NameCache::id_of(name);
  if (id == kNoName) {
    refuse(is_a(name, kTypeIsStr) ? "a name that is empty or holds NUL"
                                  : "a name that is no str");
  }
  return id;
}

void instant(uint32_t id, uint32_t generation, PyObject* attrs) noexcept {
  if (attrs == nullptr || attrs == py._Py_NoneStruct) {
    recorder::write_instant(id, generation, {});
    return;
  }
  JsonEncoder encoder;
  if (!is_a(attrs, kTypeIsDict)) {
    spans().bad_args.note("attrs of an instant must be a dict or None");
  } else if (!encoder.encode(attrs)) {
    spans().bad_args.note(encoder.reason());
  } else {
    const std::string_view text = encoder.text();
    recorder::write_instant(
        id, generation, text.size() > 2 ? text : std::string_view());
    return;
  }
  recorder::write_instant_without_args(id, generation);
}

void counter(uint32_t id, uint32_t generation, PyObject* object) noexcept {
  const double value = py.PyFloat_AsDouble(object);
  if (value == -1.0 && py.PyErr_Occurred() != nullptr) {
    char reason[160];
    take_exception(reason, sizeof(reason));
    refuse(reason);
    return;
  }
  if (!std::isfinite(value)) {
    refuse("a value that is not finite");
    return;
  }
  recorder::write_counter(id, generation, value);
}

}  // namespace

uint32_t generation_or_start() noexcept {
  const uint32_t generation = recorder::recording();
  if (SHP_LIKELY(generation != 0) || !recorder::g_process.starts_by_itself ||
      recorder::g_wiped.by_itself.load(std::memory_order_relaxed) ==
          recorder::kTried) {
    return generation;
  }
  // The first of them may have to wait for a daemon to start.
  const WithoutGil others_run;
  return recorder::start_by_itself();
}

PyObject* put_instant(PyObject*,
                      PyObject* const* args,
                      Py_ssize_t count,
                      PyObject* keywords) noexcept {
  PyObject* parsed[3];
  if (!parse_arguments(kInstant, args, count, keywords, parsed)) {
    return nullptr;
  }
  const uint32_t generation = generation_or_start();
  const uint32_t id = generation != 0 ? id_of(parsed[0]) : kNoName;
  if (id != kNoName) {
    instant(id, generation, parsed[1]);
  }
  return done();
}

PyObject* put_counter(PyObject*,
                      PyObject* const* args,
                      Py_ssize_t count,
                      PyObject* keywords) noexcept {
  PyObject* parsed[3];
  if (!parse_arguments(kCounter, args, count, keywords, parsed)) {
    return nullptr;
  }
  const uint32_t generation = generation_or_start();
  const uint32_t id = generation != 0 ? id_of(parsed[0]) : kNoName;
  if (id != kNoName) {
    counter(id, generation, parsed[1]);
  }
  return done();
}

}  // namespace shp::python
