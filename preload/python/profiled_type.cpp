#include "preload/python/span_calls.h"
#include "preload/python/types.h"

namespace shp::python {
namespace {

struct ProfiledObject {
  PyObject head;
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* name;
  PyObject* attrs;
  PyObject* dict;  // __wrapped__, __name__, __doc__ …
  PyObject* weak_references;
};

ProfiledObject* profiled_of(PyObject* self) noexcept {
  return reinterpret_cast<ProfiledObject*>(self);
}

PyObject* call_profiled(PyObject* self,
                        PyObject* const* args,
                        size_t count_and_flag,
                        PyObject* keywords) noexcept {
  const ProfiledObject& profiled = *profiled_of(self);
  // The call may drop the last reference to this object.
  const Ref held = Ref::borrow(self);
  const recorder::SpanId id = start_span(profiled.name, profiled.attrs);
  PyObject* result = call(profiled.function, args, count_and_flag, keywords);
  if (result != nullptr) {
    if (SHP_LIKELY(end_span(id))) {
      return result;
    }
    py.Py_DecRef(result);
    return nullptr;
  }
  const SavedException raised;
  if (!end_span(id)) {
    py.PyErr_Clear();
  }
  return nullptr;
}

// Profiled(function, name, attrs)
PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) noexcept {
  if (py.PyTuple_Size(args) != 3) {
    return py.PyErr_Format(*py.PyExc_TypeError,
                           "Profiled(function, name, attrs)");
  }
  PyObject* self = py.PyType_GenericAlloc(type, 0);
  if (self == nullptr) {
    return nullptr;
  }
  ProfiledObject& profiled = *profiled_of(self);
  profiled.vectorcall = call_profiled;
  profiled.function = new_reference(py.PyTuple_GetItem(args, 0));
  profiled.name = new_reference(py.PyTuple_GetItem(args, 1));
  profiled.attrs = new_reference(py.PyTuple_GetItem(args, 2));
  return self;
}

PyObject* bind(PyObject* self, PyObject* instance, PyObject*) noexcept {
  if (instance == nullptr || instance == py._Py_NoneStruct) {
    return new_reference(self);
  }
  return py.PyMethod_New(self, instance);
}

PyObject* repr(PyObject* self) noexcept {
  const Ref name(py.PyObject_GetAttrString(self, "__qualname__"));
  if (!name) {
    py.PyErr_Clear();
    return py.PyUnicode_FromFormat("<profiled %R>",
                                   profiled_of(self)->function);
  }
  return py.PyUnicode_FromFormat(
      "<profiled function %S at %p>", name.get(), self);
}

// As functions do: copied by reference, pickled by their qualified name.
PyObject* reduce(PyObject* self, PyObject*) noexcept {
  return py.PyObject_GetAttrString(self, "__qualname__");
}

int traverse(PyObject* self, visitproc visit, void* data) noexcept {
  const ProfiledObject& profiled = *profiled_of(self);
  PyObject* type =
      py.minor >= 9 ? reinterpret_cast<PyObject*>(type_of(self)) : nullptr;
  for (PyObject* object : {type,
                           profiled.function,
                           profiled.name,
                           profiled.attrs,
                           profiled.dict}) {
    if (object != nullptr) {
      if (const int stop = visit(object, data); stop != 0) {
        return stop;
      }
    }
  }
  return 0;
}

// The function stays: a call may come while the collector breaks the cycle,
// and every cycle through it goes through the dict (__wrapped__) or its own
// globals and closure, which the collector clears as well.
int clear(PyObject* self) noexcept {
  ProfiledObject& profiled = *profiled_of(self);
  const Ref attrs(profiled.attrs);
  const Ref dict(profiled.dict);
  profiled.attrs = nullptr;
  profiled.dict = nullptr;
  return 0;
}

void deallocate(PyObject* self) noexcept {
  py.PyObject_GC_UnTrack(self);
  ProfiledObject& profiled = *profiled_of(self);
  if (profiled.weak_references != nullptr) {
    py.PyObject_ClearWeakRefs(self);
  }
  clear(self);
  const Ref function(profiled.function);
  const Ref name(profiled.name);
  const Ref type(reinterpret_cast<PyObject*>(type_of(self)));
  py.PyObject_GC_Del(self);
}

PyMethodDef g_methods[] = {
    {"__reduce__", reinterpret_cast<void*>(&reduce), kMethodNoArgs, nullptr},
    {}};

PyGetSetDef g_getset[] = {
    {"__dict__", nullptr, nullptr, nullptr, nullptr},  // filled when made
    {}};

PyMemberDef g_members[] = {{"__vectorcalloffset__",
                            kMemberSsize,
                            offsetof(ProfiledObject, vectorcall),
                            kMemberReadOnly,
                            nullptr},
                           {"__dictoffset__",
                            kMemberSsize,
                            offsetof(ProfiledObject, dict),
                            kMemberReadOnly,
                            nullptr},
                           {"__weaklistoffset__",
                            kMemberSsize,
                            offsetof(ProfiledObject, weak_references),
                            kMemberReadOnly,
                            nullptr},
                           {}};

PyType_Slot g_slots[] = {
    {kSlotNew, reinterpret_cast<void*>(&make)},
    {kSlotCall, nullptr},  // filled when made
    {kSlotDescrGet, reinterpret_cast<void*>(&bind)},
    {kSlotRepr, reinterpret_cast<void*>(&repr)},
    {kSlotMethods, g_methods},
    {kSlotGetset, g_getset},
    {kSlotTraverse, reinterpret_cast<void*>(&traverse)},
    {kSlotClear, reinterpret_cast<void*>(&clear)},
    {kSlotDealloc, reinterpret_cast<void*>(&deallocate)},
    {kSlotMembers, g_members},  // last: 3.8 knows no such members
    {}};

PyType_Spec g_spec{
    "service_host_profiling._native.Profiled",
    sizeof(ProfiledObject),
    0,
    kTypeDefault | kTypeHaveGc | kTypeHaveVectorcall | kTypeMethodDescriptor,
    g_slots};

}  // namespace

PyObject* make_profiled_type() noexcept {
  g_slots[1].function = reinterpret_cast<void*>(py.PyVectorcall_Call);
  g_getset[0].get = reinterpret_cast<void*>(py.PyObject_GenericGetDict);
  g_getset[0].set = reinterpret_cast<void*>(py.PyObject_GenericSetDict);
  if (py.minor < 9) {
    g_slots[sizeof(g_slots) / sizeof(g_slots[0]) - 2] = {};
  }
  PyObject* type = py.PyType_FromSpec(&g_spec);
  if (type != nullptr && py.minor < 9) {
    auto* made = reinterpret_cast<PyTypeObject*>(type);
    made->tp_vectorcall_offset = offsetof(ProfiledObject, vectorcall);
    made->tp_dictoffset = offsetof(ProfiledObject, dict);
    made->tp_weaklistoffset = offsetof(ProfiledObject, weak_references);
  }
  return type;
}

}  // namespace shp::python
