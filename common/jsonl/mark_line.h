// One line of a host file as a mark: an instant or a counter's values, see
// span_format.h. For line_reader.*; pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/jsonl/host_types.h"

namespace shp {

// What a line of `type` is: kSpan when no mark.
HostItem mark_item(std::string_view type);

// `line` is_json() and its type is an instant's or a counter's: `out.item`.
// Returns what is wrong, empty when nothing is.
std::string parse_mark(std::string_view line, HostSpan& out, int64_t& pid);

}  // namespace shp
