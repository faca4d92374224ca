#include "preload/python/text.h"

namespace shp::python {

Text::Text(PyObject* string) noexcept {
  Py_ssize_t bytes = 0;
  const char* utf8 = py.PyUnicode_AsUTF8AndSize(string, &bytes);
  if (utf8 == nullptr) {
    py.PyErr_Clear();
    encoded_.reset(
        py.PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace"));
    if (!encoded_) {
      py.PyErr_Clear();
      return;
    }
    utf8 = py.PyBytes_AsString(encoded_.get());
    bytes = py.PyBytes_Size(encoded_.get());
  }
  view_ = {utf8, static_cast<size_t>(bytes)};
  ok_ = true;
}

}  // namespace shp::python
