// What this library needs to know of CPython 3.8 … 3.14, declared by hand so
// that one binary serves them all and links none: object layouts that have not
// changed since 3.8, and functions found by dlsym when the module is imported.
//
// Only GIL builds: object headers of free-threaded and Py_TRACE_REFS builds are
// different, and unsupported_build() says so before anything is touched.
// Everything here is called with the GIL held, on threads that Python knows.
//
// Sources: Include/object.h, cpython/object.h, methodobject.h, moduleobject.h,
// structmember.h of the tags v3.8.18 … v3.14.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shp::python {

using Py_ssize_t = std::ptrdiff_t;

struct PyTypeObject;

struct PyObject {
  intptr_t ob_refcnt;  // from 3.12 the low half counts, the rest is flags
  PyTypeObject* ob_type;
};

using PyCFunctionFastWithKeywords = PyObject* (*)(PyObject* self,
                                                  PyObject* const* args,
                                                  Py_ssize_t count,
                                                  PyObject* keywords);
using vectorcallfunc = PyObject* (*)(PyObject* callable,
                                     PyObject* const* args,
                                     size_t count_and_flag,
                                     PyObject* keywords);
using visitproc = int (*)(PyObject*, void*);

// The head of a type, as far as it is read here.
struct PyTypeObject {
  PyObject ob_base;
  Py_ssize_t ob_size;
  const char* tp_name;
  Py_ssize_t tp_basicsize;
  Py_ssize_t tp_itemsize;
  void* tp_dealloc;
  Py_ssize_t tp_vectorcall_offset;
  void* slots_until_flags[13];
  unsigned long tp_flags;
  void* slots_until_weaklist[4];
  Py_ssize_t tp_weaklistoffset;
  void* slots_until_dict[9];
  Py_ssize_t tp_dictoffset;
};
static_assert(offsetof(PyTypeObject, tp_vectorcall_offset) == 56);
static_assert(offsetof(PyTypeObject, tp_flags) == 168);
static_assert(offsetof(PyTypeObject, tp_weaklistoffset) == 208);
static_assert(offsetof(PyTypeObject, tp_dictoffset) == 288);

inline constexpr unsigned long kTypeHaveVectorcall = 1UL << 11;
inline constexpr unsigned long kTypeHaveGc = 1UL << 14;
inline constexpr unsigned long kTypeMethodDescriptor = 1UL << 17;
inline constexpr unsigned long kTypeDefault = 1UL << 18;
inline constexpr unsigned long kTypeIsLong = 1UL << 24;
inline constexpr unsigned long kTypeIsList = 1UL << 25;
inline constexpr unsigned long kTypeIsTuple = 1UL << 26;
inline constexpr unsigned long kTypeIsStr = 1UL << 28;
inline constexpr unsigned long kTypeIsDict = 1UL << 29;

struct PyMethodDef {
  const char* name;
  void* function;
  int flags;
  const char* doc;
};
inline constexpr int kMethodVarargs = 0x1;
inline constexpr int kMethodNoArgs = 0x4;
inline constexpr int kMethodOneArg = 0x8;
inline constexpr int kMethodFastKeywords = 0x80 | 0x2;

struct PyMemberDef {
  const char* name;
  int type;
  Py_ssize_t offset;
  int flags;
  const char* doc;
};
inline constexpr int kMemberSsize = 19;
inline constexpr int kMemberReadOnly = 1;

struct PyGetSetDef {
  const char* name;
  void* get;
  void* set;
  const char* doc;
  void* closure;
};

struct PyType_Slot {
  int slot;
  void* function;
};
struct PyType_Spec {
  const char* name;
  int basicsize;
  int itemsize;
  unsigned flags;
  PyType_Slot* slots;
};
// typeslots.h; numbers are part of the stable ABI.
enum TypeSlot : int {
  kSlotCall = 50,
  kSlotClear = 51,
  kSlotDealloc = 52,
  kSlotDescrGet = 54,
  kSlotDoc = 56,
  kSlotMethods = 64,
  kSlotNew = 65,
  kSlotRepr = 66,
  kSlotTraverse = 71,
  kSlotMembers = 72,
  kSlotGetset = 73,
};

struct PyModuleDef_Slot {
  int slot;
  void* value;
};
inline constexpr int kModuleExec = 2;
inline constexpr int kModuleMultipleInterpreters = 3;  // 3.12

struct PyModuleDef {
  PyObject ob_base;
  void* m_init;
  Py_ssize_t m_index;
  PyObject* m_copy;
  const char* m_name;
  const char* m_doc;
  Py_ssize_t m_size;
  PyMethodDef* m_methods;
  PyModuleDef_Slot* m_slots;
  void* m_traverse;
  void* m_clear;
  void* m_free;
};
static_assert(sizeof(PyModuleDef) == 104);

inline constexpr int kFileInput = 257;  // Py_file_input
inline constexpr size_t kVectorcallOffsetFlag = size_t{1}
                                                << (8 * sizeof(size_t) - 1);

// X(result, name, parameters): functions present in every CPython from 3.8.
#define SHP_CPYTHON_FUNCTIONS(X)                                            \
  X(void, Py_IncRef, (PyObject*))                                           \
  X(void, Py_DecRef, (PyObject*))                                           \
  X(const char*, Py_GetVersion, ())                                         \
  X(int, Py_AtExit, (void (*)()))                                           \
  X(PyObject*, Py_CompileString, (const char*, const char*, int))           \
  X(PyObject*, PyEval_EvalCode, (PyObject*, PyObject*, PyObject*))          \
  X(PyObject*, PyEval_GetBuiltins, ())                                      \
  X(void*, PyEval_SaveThread, ())                                           \
  X(void, PyEval_RestoreThread, (void*))                                    \
  X(void*, PyInterpreterState_Main, ())                                     \
  X(PyObject*, PyModuleDef_Init, (PyModuleDef*))                            \
  X(int, PyModule_AddObject, (PyObject*, const char*, PyObject*))           \
  X(int, PyModule_AddFunctions, (PyObject*, PyMethodDef*))                  \
  X(PyObject*, PyImport_ImportModule, (const char*))                        \
  X(void, PyErr_SetString, (PyObject*, const char*))                        \
  X(void, PyErr_SetObject, (PyObject*, PyObject*))                          \
  X(void, PyErr_Clear, ())                                                  \
  X(PyObject*, PyErr_Occurred, ())                                          \
  X(void, PyErr_Fetch, (PyObject**, PyObject**, PyObject**))                \
  X(void, PyErr_NormalizeException, (PyObject**, PyObject**, PyObject**))   \
  X(void, PyErr_Restore, (PyObject*, PyObject*, PyObject*))                 \
  X(int, PyErr_WarnEx, (PyObject*, const char*, Py_ssize_t))                \
  X(PyObject*, PyErr_NoMemory, ())                                          \
  X(PyObject*, PyErr_Format, (PyObject*, const char*, ...))                 \
  X(int, PyCallable_Check, (PyObject*))                                     \
  X(PyObject*, PyObject_Call, (PyObject*, PyObject*, PyObject*))            \
  X(PyObject*, PyObject_CallObject, (PyObject*, PyObject*))                 \
  X(PyObject*, PyObject_GetAttrString, (PyObject*, const char*))            \
  X(PyObject*, PyObject_Str, (PyObject*))                                   \
  X(PyObject*, PyObject_GenericGetDict, (PyObject*, void*))                 \
  X(int, PyObject_GenericSetDict, (PyObject*, PyObject*, void*))            \
  X(void, PyObject_GC_UnTrack, (void*))                                     \
  X(void, PyObject_GC_Del, (void*))                                         \
  X(void, PyObject_ClearWeakRefs, (PyObject*))                              \
  X(PyObject*, PyType_FromSpec, (PyType_Spec*))                             \
  X(PyObject*, PyType_GenericAlloc, (PyTypeObject*, Py_ssize_t))            \
  X(int, PyType_IsSubtype, (PyTypeObject*, PyTypeObject*))                  \
  X(PyObject*, PyMethod_New, (PyObject*, PyObject*))                        \
  X(PyObject*, PyVectorcall_Call, (PyObject*, PyObject*, PyObject*))        \
  X(PyObject*, PyMapping_Items, (PyObject*))                                \
  X(PyObject*, PyLong_FromLongLong, (long long))                            \
  X(long long, PyLong_AsLongLongAndOverflow, (PyObject*, int*))             \
  X(double, PyFloat_AsDouble, (PyObject*))                                  \
  X(char*, PyOS_double_to_string, (double, char, int, int, int*))           \
  X(void, PyMem_Free, (void*))                                              \
  X(PyObject*, PyUnicode_FromStringAndSize, (const char*, Py_ssize_t))      \
  X(PyObject*, PyUnicode_FromFormat, (const char*, ...))                    \
  X(PyObject*, PyUnicode_DecodeFSDefaultAndSize, (const char*, Py_ssize_t)) \
  X(PyObject*, PyUnicode_EncodeFSDefault, (PyObject*))                      \
  X(const char*, PyUnicode_AsUTF8AndSize, (PyObject*, Py_ssize_t*))         \
  X(PyObject*,                                                              \
    PyUnicode_AsEncodedString,                                              \
    (PyObject*, const char*, const char*))                                  \
  X(int, PyUnicode_CompareWithASCIIString, (PyObject*, const char*))        \
  X(Py_ssize_t, PyUnicode_GetLength, (PyObject*))                           \
  X(char*, PyBytes_AsString, (PyObject*))                                   \
  X(Py_ssize_t, PyBytes_Size, (PyObject*))                                  \
  X(PyObject*, PyBytes_FromStringAndSize, (const char*, Py_ssize_t))        \
  X(PyObject*, PyTuple_New, (Py_ssize_t))                                   \
  X(Py_ssize_t, PyTuple_Size, (PyObject*))                                  \
  X(PyObject*, PyTuple_GetItem, (PyObject*, Py_ssize_t))                    \
  X(int, PyTuple_SetItem, (PyObject*, Py_ssize_t, PyObject*))               \
  X(Py_ssize_t, PyList_Size, (PyObject*))                                   \
  X(PyObject*, PyList_GetItem, (PyObject*, Py_ssize_t))                     \
  X(PyObject*, PyDict_New, ())                                              \
  X(int, PyDict_Next, (PyObject*, Py_ssize_t*, PyObject**, PyObject**))     \
  X(int, PyDict_SetItem, (PyObject*, PyObject*, PyObject*))                 \
  X(int, PyDict_SetItemString, (PyObject*, const char*, PyObject*))         \
  X(PyObject*, PyDict_GetItemString, (PyObject*, const char*))

// Objects and types, by address; PyExc_* are pointers to them.
#define SHP_CPYTHON_OBJECTS(X)       \
  X(PyObject, _Py_NoneStruct)        \
  X(PyObject, _Py_TrueStruct)        \
  X(PyObject, _Py_FalseStruct)       \
  X(PyTypeObject, PyLong_Type)       \
  X(PyTypeObject, PyFloat_Type)      \
  X(PyTypeObject, PyUnicode_Type)    \
  X(PyTypeObject, PyDict_Type)       \
  X(PyObject*, PyExc_Exception)      \
  X(PyObject*, PyExc_ImportError)    \
  X(PyObject*, PyExc_OSError)        \
  X(PyObject*, PyExc_RuntimeError)   \
  X(PyObject*, PyExc_RuntimeWarning) \
  X(PyObject*, PyExc_TypeError)      \
  X(PyObject*, PyExc_ValueError)

struct CPython {
#define SHP_DECLARE(result, name, parameters) result(*name) parameters;
  SHP_CPYTHON_FUNCTIONS(SHP_DECLARE)
#undef SHP_DECLARE
#define SHP_DECLARE(type, name) type* name;
  SHP_CPYTHON_OBJECTS(SHP_DECLARE)
#undef SHP_DECLARE
  void* (*current_interpreter)();  // named differently in 3.8
  int minor;                       // 11 for 3.11
  bool none_counts_references;     // before 3.12; immortal from there
};

// The interpreter of this process, valid after load_cpython().
extern CPython py;

// Finds everything; returns nullptr or what is wrong, a sentence for people.
// Cheap when called again.
const char* load_cpython() noexcept;

// Why this interpreter's objects cannot be handled, or nullptr. `find` is
// dlsym-like: the address of a symbol or nullptr.
const char* unsupported_build(void* (*find)(const char*)) noexcept;

inline PyTypeObject* type_of(const PyObject* object) noexcept {
  return object->ob_type;
}
inline bool is_a(const PyObject* object, unsigned long type_flag) noexcept {
  return (object->ob_type->tp_flags & type_flag) != 0;
}
inline PyObject* new_reference(PyObject* object) noexcept {
  py.Py_IncRef(object);
  return object;
}
inline PyObject* none() noexcept {
  if (py.none_counts_references) {
    ++py._Py_NoneStruct->ob_refcnt;
  }
  return py._Py_NoneStruct;
}

// Owns one reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) noexcept : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    reset(other.release());
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { reset(); }

  static Ref borrow(PyObject* object) noexcept {
    return Ref(new_reference(object));
  }
  PyObject* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  [[nodiscard]] PyObject* release() noexcept {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }
  // The old object dies after the new one is in place: its __del__ may look.
  void reset(PyObject* owned = nullptr) noexcept {
    PyObject* old = object_;
    object_ = owned;
    if (old != nullptr) {
      py.Py_DecRef(old);
    }
  }

 private:
  PyObject* object_ = nullptr;
};

// Other threads run Python while this lives.
class WithoutGil {
 public:
  WithoutGil() noexcept : thread_(py.PyEval_SaveThread()) {}
  ~WithoutGil() { py.PyEval_RestoreThread(thread_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* thread_;
};

// The exception being raised, set aside so that Python may be called.
class SavedException {
 public:
  SavedException() noexcept { py.PyErr_Fetch(&type_, &value_, &trace_); }
  ~SavedException() { py.PyErr_Restore(type_, value_, trace_); }
  SavedException(const SavedException&) = delete;
  SavedException& operator=(const SavedException&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

// For callables without a vectorcall of their own.
PyObject* call_by_tuple(PyObject* callable,
                        PyObject* const* args,
                        size_t count_and_flag,
                        PyObject* keywords) noexcept;

// `callable(*args)` by vectorcall; exceptions as usual.
inline PyObject* call(PyObject* callable,
                      PyObject* const* args,
                      size_t count_and_flag,
                      PyObject* keywords) noexcept {
  const PyTypeObject* type = type_of(callable);
  if ((type->tp_flags & kTypeHaveVectorcall) != 0) {
    vectorcallfunc function = *reinterpret_cast<vectorcallfunc*>(
        reinterpret_cast<char*>(callable) + type->tp_vectorcall_offset);
    if (function != nullptr) [[likely]] {
      return function(callable, args, count_and_flag, keywords);
    }
  }
  return call_by_tuple(callable, args, count_and_flag, keywords);
}

}  // namespace shp::python
