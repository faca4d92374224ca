// Marks, counter values, and spans whose two ends are known at once: what needs
// no open slot. For C, C++, Python and the injections; any thread.
//
// As the span calls: no allocation, lock or system call once the thread has its
// ring, errno kept, never fails visibly. Losses are counted: marks and values
// in RingHeader::lost_marks, spans as overflow.
//
// `generation` is what recording() or recording_or_start() answered, not 0;
// `name` an id (names.h), not kNoName.
#pragma once

#include <cstdint>
#include <string_view>

#include "preload/recorder.h"

namespace shp::recorder {

// A point in time. `json`: the text of one JSON object, or empty.
void write_instant(uint32_t name,
                   uint32_t generation,
                   std::string_view json) noexcept;

// Attributes that could not be encoded: the mark has none and is counted.
void write_instant_without_args(uint32_t name, uint32_t generation) noexcept;

// A value from now on. One that is not finite is lost.
void write_counter(uint32_t name, uint32_t generation, double value) noexcept;

// A mark or value that was refused for its name. Counts.
void refuse_mark() noexcept;

// A span that began at `start_ticks`, on whatever thread of this process, and
// ends now; it stands on the calling thread's row.
void write_span(uint32_t name,
                uint32_t generation,
                uint64_t start_ticks,
                std::string_view json) noexcept;

// A stamp for write_span, on a thread that may have no ring yet. 0: it can get
// none, which was counted.
uint64_t stamp_now(uint32_t generation) noexcept;

}  // namespace shp::recorder
