// append_json_object over any bytes: what it takes must be one line, and taken
// again as it is. append_json_string must always make a string that is taken.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/base/utf8.h"
#include "common/jsonl/json_text.h"

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string once = "x";
  if (shp::append_json_object(text, &once)) {
    once.erase(0, 1);
    require(once.size() <= text.size());
    require(once.find('\n') == std::string::npos && shp::is_utf8(once));
    std::string twice;
    require(shp::append_json_object(once, &twice) && twice == once);
  } else {
    require(once == "x");
  }
  std::string object = "{";
  shp::append_json_string(text, &object);
  object += ":1}";
  std::string copy;
  require(shp::append_json_object(object, &copy) && copy == object);
  return 0;
}
