// What NVTX, ITT and mstx have in common: ranges that nest on a thread (push
// and pop), ranges that may end on another thread (start and end), and the
// handles that programs hold for names.
//
// Any thread; as the span calls: no allocation, no system call but once a
// thread, errno kept. Where nothing records, each call costs a load and a
// branch.
#pragma once

#include <cstdint>
#include <string_view>

#include "preload/recorder.h"

namespace shp::inject {

// Opens a span on the calling thread; a domain's ranges nest among themselves.
// `json`: args, or empty. The depth that it has, 0 outermost; -1: not recorded.
int push_range(uint32_t generation,
               const void* domain,
               uint32_t name,
               std::string_view json) noexcept;
// Ends the domain's innermost range of this thread; -1: there is none.
int pop_range(const void* domain) noexcept;

// A range that ends on whatever thread, under a key that is the caller's. Args
// of more than kMostRangeArgs bytes are left out, and count as bad.
inline constexpr uint32_t kMostRangeArgs = 216;
void start_range(uint32_t generation,
                 uint64_t key,
                 uint32_t name,
                 std::string_view json) noexcept;
void end_range(uint64_t key) noexcept;
// A key that was never given before.
uint64_t new_range_key() noexcept;

// Handles that another tool made (chaining) and what each stands for here.
// False: no room.
bool keep_handle(const void* handle, uint32_t name) noexcept;
uint32_t name_of_handle(const void* handle) noexcept;  // kNoName: unknown

// Where no other tool makes handles, the name's id is the handle.
inline void* handle_of_name(uint32_t name) noexcept {
  return reinterpret_cast<void*>(uintptr_t{name} * 2 + 1);
}
inline uint32_t name_of_own_handle(const void* handle) noexcept {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) >> 1);
}

}  // namespace shp::inject
