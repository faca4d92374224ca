// Names: every distinct span name has one id for the life of the process.
//
// The registry is private memory that a forked child keeps, so ids stay valid
// across fork and across sessions; attach() copies it to a new arena's name
// table and later names are appended to both. Any thread; look-ups take no
// lock, adding one does (a lock that fork empties).
#pragma once

#include <cstdint>
#include <string_view>

#include "preload/arena_client.h"

namespace shp::recorder {

// What a full table calls everything else. Each such span is counted, so an id
// is cached by its string only when it is greater.
inline constexpr uint32_t kTooManyId = 1;

// Id of `name` (1..). A full table gives the id of "(too many names)" and
// counts; a name over kMaxNameBytes is cut there, on a character boundary.
// kNoName when `name` is empty or holds NUL, or without memory at all.
uint32_t intern_name(std::string_view name) noexcept;

// The same for a C string, by way of a small per-thread cache that is keyed by
// the pointer and compares the characters, so a reused buffer is no trap.
uint32_t intern_c_name(const char* name) noexcept;

// The text of an id that intern_name gave; ends in NUL, lives on.
std::string_view name_text(uint32_t id) noexcept;

// Gives a new arena all names known so far and sends later ones there too.
bool attach_names(const ClientArena& arena) noexcept;

}  // namespace shp::recorder
