#include "preload/python/json_encoder.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/shm/arena_abi.h"
#include "preload/python/text.h"

namespace shp::python {
namespace {

// For each byte: 0 as it is, 'u' as \u00XX, else the letter after a backslash.
struct EscapeTable {
  char of[256] = {};
  constexpr EscapeTable() {
    for (int i = 0; i < 0x20; ++i) {
      of[i] = 'u';
    }
    of['"'] = '"';
    of['\\'] = '\\';
    of['\n'] = 'n';
    of['\r'] = 'r';
    of['\t'] = 't';
    of['\b'] = 'b';
    of['\f'] = 'f';
  }
};
constexpr EscapeTable kEscapes;

bool is_real(PyObject* object) noexcept {
  return type_of(object) == py.PyFloat_Type ||
         py.PyType_IsSubtype(type_of(object), py.PyFloat_Type) != 0;
}

}  // namespace

JsonEncoder::~JsonEncoder() {
  if (data_ != inline_) {
    std::free(data_);
  }
}

bool JsonEncoder::encode(PyObject* dict) noexcept {
  return container(dict, 1);
}

bool JsonEncoder::grow(size_t more) noexcept {
  if (size_ + more > kMaxArgsBytes) {
    return fail("args of more than 1 MiB", "", "");
  }
  size_t capacity = capacity_ * 2;
  while (capacity < size_ + more) {
    capacity *= 2;
  }
  char* old = data_ == inline_ ? nullptr : data_;
  char* data = static_cast<char*>(std::realloc(old, capacity));
  if (data == nullptr) {
    return fail("out of memory", "", "");
  }
  if (old == nullptr) {
    std::memcpy(data, inline_, size_);
  }
  data_ = data;
  capacity_ = capacity;
  return true;
}

bool JsonEncoder::put(std::string_view text) noexcept {
  if (text.size() > capacity_ - size_ && !grow(text.size())) [[unlikely]] {
    return false;
  }
  std::memcpy(data_ + size_, text.data(), text.size());
  size_ += text.size();
  return true;
}

bool JsonEncoder::put_escaped(std::string_view text) noexcept {
  size_t plain = 0;  // bytes before this are written
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const char escape = kEscapes.of[byte];
    if (escape == 0) [[likely]] {
      continue;
    }
    char out[8];
    const int length = escape == 'u'
                           ? std::snprintf(out, sizeof(out), "\\u%04x", byte)
                           : std::snprintf(out, sizeof(out), "\\%c", escape);
    if (!put(text.substr(plain, i - plain)) ||
        !put({out, static_cast<size_t>(length)})) {
      return false;
    }
    plain = i + 1;
  }
  return put(text.substr(plain));
}

bool JsonEncoder::string(PyObject* object) noexcept {
  const Text text(object);
  if (!text.ok()) {
    return fail("out of memory", "", "");
  }
  return put('"') && put_escaped(text.view()) && put('"');
}

bool JsonEncoder::integer(PyObject* object) noexcept {
  int overflow = 0;
  const long long number = py.PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) [[likely]] {
    char out[24];
    const auto end = std::to_chars(out, out + sizeof(out), number).ptr;
    return put({out, static_cast<size_t>(end - out)});
  }
  // int.__repr__, whatever a subclass (an IntFlag) says of itself; raises for
  // numbers of more digits than sys.set_int_max_str_digits() allows.
  Ref repr(py.PyObject_GetAttrString(
      reinterpret_cast<PyObject*>(py.PyLong_Type), "__repr__"));
  Ref text(repr ? call(repr.get(), &object, 1, nullptr) : nullptr);
  if (!text) {
    return fail_with_exception();
  }
  return put(Text(text.get()).view());
}

bool JsonEncoder::real(double number) noexcept {
  if (!std::isfinite(number)) {
    return fail("Out of range float values are not JSON compliant", "", "");
  }
  if (std::fabs(number) < 1e15 && number == std::trunc(number) &&
      (number != 0 || !std::signbit(number))) {
    char out[24];
    const auto end =
        std::to_chars(out, out + sizeof(out), static_cast<long long>(number))
            .ptr;
    return put({out, static_cast<size_t>(end - out)}) && put(".0");
  }
  constexpr int kAddDotZero = 2;  // Py_DTSF_ADD_DOT_0
  char* text = py.PyOS_double_to_string(number, 'r', 0, kAddDotZero, nullptr);
  if (text == nullptr) {
    return fail_with_exception();
  }
  const bool done = put(text);
  py.PyMem_Free(text);
  return done;
}

// What is written the same way as a key and as a value. `done` says whether
// `object` was such a scalar.
bool JsonEncoder::scalar_text(PyObject* object, bool& done) noexcept {
  done = true;
  if (object == py._Py_NoneStruct) {
    return put("null");
  }
  if (object == py._Py_TrueStruct) {
    return put("true");
  }
  if (object == py._Py_FalseStruct) {
    return put("false");
  }
  if (is_a(object, kTypeIsLong)) {
    return integer(object);
  }
  if (is_real(object)) {
    return real(py.PyFloat_AsDouble(object));
  }
  done = false;
  return true;
}

bool JsonEncoder::value(PyObject* object, int depth) noexcept {
  if (is_a(object, kTypeIsStr)) {
    return string(object);
  }
  bool done = false;
  if (!scalar_text(object, done)) {
    return false;
  }
  if (done) {
    return true;
  }
  if (is_a(object, kTypeIsDict | kTypeIsList | kTypeIsTuple)) {
    return container(object, depth + 1);
  }
  return fail(
      "Object of type ", type_of(object)->tp_name, " is not JSON serializable");
}

bool JsonEncoder::key(PyObject* object) noexcept {
  if (is_a(object, kTypeIsStr)) {
    return string(object);
  }
  bool done = false;
  if (!put('"') || !scalar_text(object, done)) {
    return false;
  }
  if (!done) {
    return fail("keys must be str, int, float, bool or None, not ",
                type_of(object)->tp_name,
                "");
  }
  return put('"');
}

// A reference is held meanwhile: the items() of a subclass further in may
// change what contains it.
bool JsonEncoder::container(PyObject* object, int depth) noexcept {
  if (depth > kMaxDepth) {
    return fail("Circular reference, or nested more than 100 deep", "", "");
  }
  const Ref held = Ref::borrow(object);
  if (!is_a(object, kTypeIsDict)) {
    return put('[') && sequence(object, depth) && put(']');
  }
  const bool exact = type_of(object) == py.PyDict_Type;
  return put('{') &&
         (exact ? dict_members(object, depth) : item_members(object, depth)) &&
         put('}');
}

bool JsonEncoder::member(PyObject* name,
                         PyObject* object,
                         bool first,
                         int depth) noexcept {
  return (first || put(',')) && key(name) && put(':') && value(object, depth);
}

bool JsonEncoder::dict_members(PyObject* dict, int depth) noexcept {
  Py_ssize_t position = 0;
  PyObject* name = nullptr;
  PyObject* object = nullptr;
  for (bool first = true; py.PyDict_Next(dict, &position, &name, &object) != 0;
       first = false) {
    if (!member(name, object, first, depth)) {
      return false;
    }
  }
  return true;
}

bool JsonEncoder::item_members(PyObject* dict, int depth) noexcept {
  const Ref items(py.PyMapping_Items(dict));
  if (!items) {
    return fail_with_exception();
  }
  for (Py_ssize_t i = 0; i < py.PyList_Size(items.get()); ++i) {
    PyObject* pair = py.PyList_GetItem(items.get(), i);
    if (!is_a(pair, kTypeIsTuple) || py.PyTuple_Size(pair) != 2) {
      return fail("items must return 2-tuples", "", "");
    }
    if (!member(py.PyTuple_GetItem(pair, 0),
                py.PyTuple_GetItem(pair, 1),
                i == 0,
                depth)) {
      return false;
    }
  }
  return true;
}

bool JsonEncoder::sequence(PyObject* object, int depth) noexcept {
  const bool is_list = is_a(object, kTypeIsList);
  const auto size = is_list ? py.PyList_Size : py.PyTuple_Size;
  const auto item = is_list ? py.PyList_GetItem : py.PyTuple_GetItem;
  for (Py_ssize_t i = 0; i < size(object); ++i) {
    if ((i != 0 && !put(',')) || !value(item(object, i), depth)) {
      return false;
    }
  }
  return true;
}

bool JsonEncoder::fail(const char* before,
                       const char* what,
                       const char* after) noexcept {
  std::snprintf(reason_, sizeof(reason_), "%s%s%s", before, what, after);
  return false;
}

bool JsonEncoder::fail_with_exception() noexcept {
  take_exception(reason_, sizeof(reason_));
  return false;
}

void take_exception(char* out, size_t bytes) noexcept {
  PyObject* raw[3] = {};
  py.PyErr_Fetch(&raw[0], &raw[1], &raw[2]);
  if (raw[0] == nullptr) {
    std::snprintf(out, bytes, "unknown error");
    return;
  }
  py.PyErr_NormalizeException(&raw[0], &raw[1], &raw[2]);
  Ref text(raw[1] != nullptr ? py.PyObject_Str(raw[1]) : nullptr);
  if (!text) {
    py.PyErr_Clear();
  }
  const std::string_view said =
      text ? Text(text.get()).view() : std::string_view("?");
  std::snprintf(out,
                bytes,
                "%s: %.*s",
                reinterpret_cast<PyTypeObject*>(raw[0])->tp_name,
                static_cast<int>(said.size()),
                said.data());
  const bool an_error =
      py.PyType_IsSubtype(
          reinterpret_cast<PyTypeObject*>(raw[0]),
          reinterpret_cast<PyTypeObject*>(*py.PyExc_Exception)) != 0;
  if (an_error) {
    for (PyObject* object : raw) {
      Ref owned(object);
    }
  } else {
    py.PyErr_Restore(raw[0], raw[1], raw[2]);
  }
}

}  // namespace shp::python
