#include "preload/python/deferred.h"

#include <unistd.h>

#include "preload/python/cpython_api.h"
#include "preload/python/json_encoder.h"
#include "preload/python/span_state.h"
#include "preload/session.h"

namespace shp::python {
namespace {

// A new dict in which the callables among `dict`'s values are replaced by what
// they return; empty with an exception pending.
Ref with_values(PyObject* dict) noexcept {
  const Ref items(py.PyMapping_Items(dict));
  Ref values(items ? py.PyDict_New() : nullptr);
  for (Py_ssize_t i = 0; values && i < py.PyList_Size(items.get()); ++i) {
    PyObject* pair = py.PyList_GetItem(items.get(), i);
    Ref value = Ref::borrow(py.PyTuple_GetItem(pair, 1));
    if (py.PyCallable_Check(value.get()) != 0) {
      value.reset(py.PyObject_CallObject(value.get(), nullptr));
    }
    if (!value ||
        py.PyDict_SetItem(
            values.get(), py.PyTuple_GetItem(pair, 0), value.get()) != 0) {
      values.reset();
    }
  }
  return values;
}

void lose_args(uint64_t key, std::string_view reason) noexcept {
  spans().bad_args.note(reason);
  recorder::add_deferred(key, {});
}

void lose_args_by_exception(uint64_t key) noexcept {
  char reason[160];
  take_exception(reason, sizeof(reason));
  lose_args(key, reason);
}

void resolve(uint64_t key, Ref attrs) noexcept {
  if (py.PyCallable_Check(attrs.get()) != 0) {
    attrs.reset(py.PyObject_CallObject(attrs.get(), nullptr));
    if (!attrs) {
      lose_args_by_exception(key);
      return;
    }
  }
  if (attrs.get() == py._Py_NoneStruct) {
    recorder::add_deferred(key, "{}");
    return;
  }
  if (!is_a(attrs.get(), kTypeIsDict)) {
    lose_args(key, "a callable for attrs returned no dict");
    return;
  }
  const Ref values = with_values(attrs.get());
  if (!values) {
    lose_args_by_exception(key);
    return;
  }
  JsonEncoder encoder;
  if (encoder.encode(values.get())) {
    recorder::add_deferred(key, encoder.text());
  } else {
    lose_args(key, encoder.reason());
  }
}

}  // namespace

bool resolve_deferred() noexcept {
  bool interrupted = false;
  const pid_t process = getpid();
  for (const Deferred& one : spans().take_deferred()) {
    Ref attrs(one.attrs);
    if (getpid() != process) {
      continue;  // a callable forked, and the session is the parent's
    }
    if (interrupted) {
      recorder::add_deferred(one.key, {});
      continue;
    }
    resolve(one.key, std::move(attrs));
    interrupted = py.PyErr_Occurred() != nullptr;
  }
  return !interrupted;
}

}  // namespace shp::python
