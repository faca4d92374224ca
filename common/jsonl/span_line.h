// One line of a host file as a span: the step of line_reader.* that costs time.
//
// Pure; any thread. The usual spelling (span_format.h, keys in that order, no
// white space) is compared byte for byte; every other spelling of the same JSON
// is taken by its members.
#pragma once

#include <string>
#include <string_view>

#include "common/jsonl/line_reader.h"

namespace shp {

struct SpanLine {
  HostSpan span;
  int64_t pid = 0;
};

// The text from behind the id to the name, and what it says: neighbouring lines
// mostly share it.
struct ThreadMemo {
  std::string text;
  int64_t pid = 0;
  int64_t tid = 0;
};

// True when `line` is exactly the usual spelling of a span, args checked.
bool parse_usual_span(std::string_view line, SpanLine& out, ThreadMemo& memo);

// `line` is_json() and its "type" is "span". Returns what is wrong, empty when
// nothing is.
std::string parse_any_span(std::string_view line, SpanLine& out);

// Value of the member "type" when it is a string, else empty.
std::string line_type(std::string_view line);

}  // namespace shp
