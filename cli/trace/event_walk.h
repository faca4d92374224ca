// parse_event() over a StructureIndex: the same fields in a fraction of the
// time, for events as profilers write them.
//
// Pure; any thread. Whatever is odd or does not end within the index is left to
// parse_event(), which alone says what is wrong with an event.
#pragma once

#include "cli/trace/event_fields.h"
#include "cli/trace/structure_index.h"

namespace shp {

// The event at `begin` of the index's text. What comes back is the position
// behind it, or null: parse_event() has to look.
const char* walk_event(const StructureIndex& index,
                       size_t begin,
                       EventFields& fields);

}  // namespace shp
