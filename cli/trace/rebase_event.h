// One event of a trace as it reads in a combined one: another pid, another
// base, and an id that no other trace's events share. Everything else stays
// byte for byte.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/trace/event_fields.h"

namespace shp {

struct EventRebase {
  int64_t old_base_ns = 0;
  int64_t new_base_ns = 0;
  uint32_t trace = 0;  // number of the trace, for ids
};

// `fields` are parse_event()'s of `text`; `pid` is the new pid's text.
std::string rebase_event(std::string_view text,
                         const EventFields& fields,
                         std::string_view pid,
                         const EventRebase& rebase);

// Flows and async events are tied by their ids all over a file. Numbers stay
// numbers below 2^52, which every viewer holds exactly; texts get a prefix.
std::string rebase_id(std::string_view token, uint32_t trace);

}  // namespace shp
