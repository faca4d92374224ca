// Text: the UTF-8 of a Python str. Lone surrogates, which UTF-8 has no bytes
// for, come out as their escape, "\ud800" in six characters (Python's
// "backslashreplace"), so that every str has a text. GIL held.
#pragma once

#include <string_view>

#include "preload/python/cpython_api.h"

namespace shp::python {

class Text {
 public:
  // `string` must be a str. Valid as long as it and this live.
  explicit Text(PyObject* string) noexcept;

  bool ok() const noexcept { return ok_; }  // false: no memory; no exception
  std::string_view view() const noexcept { return view_; }

 private:
  Ref encoded_;
  std::string_view view_;
  bool ok_ = false;
};

}  // namespace shp::python
