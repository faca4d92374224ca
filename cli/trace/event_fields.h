// The direct fields of one trace event, as tokens: what scan.* looks at.
//
// Pure; any thread. Tokens keep their quotes and point into the text.
#pragma once

#include <string_view>

namespace shp {

// The category of every event that we put into a trace, and how a later run
// knows them. Nobody else's events have it.
inline constexpr std::string_view kOwnCategory = "shp";

struct EventFields {
  std::string_view ph;
  std::string_view cat;
  std::string_view name;
  std::string_view pid;
  std::string_view tid;
  std::string_view ts;
  std::string_view dur;
  std::string_view args;
  std::string_view id;
};

enum class Parsed { kOk, kIncomplete, kBad };

struct EventParse {
  Parsed result = Parsed::kOk;
  const char* at = nullptr;  // behind the event; kBad: where it went wrong
  const char* what = "";     // kBad: why
};

// `at` is at the event's "{". The text is padded as loose_json.h says.
EventParse parse_event(const char* at, const char* end, EventFields& fields);

}  // namespace shp
