// JsonEncoder: a span's attributes as JSON object text, what
//   json.dumps(attrs, ensure_ascii=False, allow_nan=False, separators=(",",
//   ":"))
// gives, but for lone surrogates (text.h) and a limit on depth. Straight from
// the objects into a buffer; no Python code runs but the items() of a dict's
// subclass.
//
// GIL held, no exception pending. What cannot be encoded gives false and a
// reason for people; an exception that is no error of the attributes (Ctrl-C)
// stays pending.
#pragma once

#include <cstddef>
#include <string_view>

#include "preload/python/cpython_api.h"

namespace shp::python {

class JsonEncoder {
 public:
  JsonEncoder() = default;
  ~JsonEncoder();
  JsonEncoder(const JsonEncoder&) = delete;
  JsonEncoder& operator=(const JsonEncoder&) = delete;

  // `dict` is a dict or of a subclass. Once an object.
  [[nodiscard]] bool encode(PyObject* dict) noexcept;

  std::string_view text() const noexcept { return {data_, size_}; }
  std::string_view reason() const noexcept { return reason_; }

  static constexpr int kMaxDepth = 100;

 private:
  bool value(PyObject* object, int depth) noexcept;
  bool container(PyObject* object, int depth) noexcept;
  bool dict_members(PyObject* dict, int depth) noexcept;
  bool item_members(PyObject* dict, int depth) noexcept;
  bool member(PyObject* key, PyObject* object, bool first, int depth) noexcept;
  bool sequence(PyObject* object, int depth) noexcept;
  bool key(PyObject* object) noexcept;
  bool string(PyObject* object) noexcept;
  bool integer(PyObject* object) noexcept;
  bool real(double number) noexcept;
  bool scalar_text(PyObject* object, bool& done) noexcept;

  bool put(std::string_view text) noexcept;
  bool put(char c) noexcept { return put(std::string_view(&c, 1)); }
  bool put_escaped(std::string_view text) noexcept;
  bool grow(size_t more) noexcept;
  bool fail(const char* before, const char* what, const char* after) noexcept;
  bool fail_with_exception() noexcept;

  char inline_[1024];
  char* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = sizeof(inline_);
  char reason_[160] = "";
};

// The pending exception as "Type: text" in `out`, cleared; one that is no
// `Exception` (KeyboardInterrupt, SystemExit) is described and left pending.
void take_exception(char* out, size_t bytes) noexcept;

}  // namespace shp::python
