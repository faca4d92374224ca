#include "cli/trace/event_fields.h"

#include <cstring>

#include "cli/trace/loose_json.h"

namespace shp {
namespace {

bool is(const char* key, size_t length, const char* name) {
  return std::memcmp(key, name, length) == 0;
}

// Where the value of the key goes; `unused` when nobody asks for it.
std::string_view& slot_for(const char* key,
                           size_t length,
                           EventFields& fields,
                           std::string_view& unused) {
  switch (length) {
    case 2:
      return is(key, 2, "ph")   ? fields.ph
             : is(key, 2, "ts") ? fields.ts
             : is(key, 2, "id") ? fields.id
                                : unused;
    case 3:
      return is(key, 3, "pid")   ? fields.pid
             : is(key, 3, "tid") ? fields.tid
             : is(key, 3, "cat") ? fields.cat
             : is(key, 3, "dur") ? fields.dur
                                 : unused;
    case 4:
      return is(key, 4, "name") ? fields.name
                                : (is(key, 4, "args") ? fields.args : unused);
    default:
      return unused;
  }
}

}  // namespace

EventParse parse_event(const char* at, const char* end, EventFields& fields) {
  const EventParse incomplete{Parsed::kIncomplete, at, ""};
  std::string_view unused;
  ++at;
  while (true) {
    at = skip_loose_space(at, end);
    if (at >= end) {
      return incomplete;
    }
    if (*at == '}') {
      return {Parsed::kOk, at + 1, ""};
    }
    if (*at != '"') {
      return {Parsed::kBad, at, "event's key does not start with a quote"};
    }
    const char* key = at + 1;
    at = skip_loose_string(key, end);
    if (at == nullptr) {
      return incomplete;
    }
    const size_t length = static_cast<size_t>(at - key - 1);
    at = skip_loose_space(at, end);
    if (at >= end) {
      return incomplete;
    }
    if (*at != ':') {
      return {Parsed::kBad, at, "no colon after an event's key"};
    }
    at = skip_loose_space(at + 1, end);
    const char* value = at;
    at = skip_loose_value(at, end);
    if (at == nullptr) {
      return incomplete;
    }
    if (at == value) {
      return {Parsed::kBad, at, "event's key has no value"};
    }
    slot_for(key, length, fields, unused) = {value,
                                             static_cast<size_t>(at - value)};
    at = skip_loose_space(at, end);
    if (at >= end) {
      return incomplete;
    }
    if (*at == ',') {
      ++at;
    } else if (*at != '}') {
      return {Parsed::kBad,
              at,
              "no comma after an event's value (unescaped quote?)"};
    }
  }
}

}  // namespace shp
