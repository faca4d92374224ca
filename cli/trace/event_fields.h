// The direct fields of one trace event, as tokens: what scan.* looks at.
//
// Pure; any thread. Tokens keep their quotes and point into the text.
#pragma once

#include <cstddef>
#include <cstring>
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

// Where the value of a key goes; `unused` when nobody asks for it.
inline std::string_view& event_slot(const char* key,
                                    size_t length,
                                    EventFields& fields,
                                    std::string_view& unused) {
  const auto is = [key](const char* name, size_t bytes) {
    return std::memcmp(key, name, bytes) == 0;
  };
  switch (length) {
    case 2:
      return is("ph", 2)   ? fields.ph
             : is("ts", 2) ? fields.ts
             : is("id", 2) ? fields.id
                           : unused;
    case 3:
      return is("pid", 3)   ? fields.pid
             : is("tid", 3) ? fields.tid
             : is("cat", 3) ? fields.cat
             : is("dur", 3) ? fields.dur
                            : unused;
    case 4:
      return is("name", 4) ? fields.name : is("args", 4) ? fields.args : unused;
    default:
      return unused;
  }
}

enum class Parsed { kOk, kIncomplete, kBad };

struct EventParse {
  Parsed result = Parsed::kOk;
  const char* at = nullptr;  // behind the event; kBad: where it went wrong
  const char* what = "";     // kBad: why
};

// `at` is at the event's "{". The text is padded as loose_json.h says.
EventParse parse_event(const char* at, const char* end, EventFields& fields);

}  // namespace shp
