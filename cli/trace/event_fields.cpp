#include "cli/trace/event_fields.h"

#include "cli/trace/loose_json.h"

namespace shp {
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
    event_slot(key, length, fields, unused) = {value,
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
