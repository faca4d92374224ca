// What an NVTX call says, as a name and args: messages of three kinds, domains,
// categories, colours, payloads. For nvtx.cpp; any thread, as the span calls.
#pragma once

#include <cstdint>
#include <string_view>

#include "preload/inject/nvtx_abi.h"

namespace shp::inject::nvtx {

// Whether handles are another tool's (chaining) or our own.
enum class Handles : bool { kOwn, kAnothers };

uint32_t name_of(Handle handle, Handles handles) noexcept;
uint32_t intern(const char* text) noexcept;
uint32_t intern(const wchar_t* text) noexcept;
// kNoName: no message, or an empty one.
uint32_t name_of_event(const EventAttributes& event, Handles handles) noexcept;

// The name of a category, for args of later events; domain 0: none.
void name_category(uint32_t domain, uint32_t category, uint32_t name) noexcept;

class Args {
 public:
  // `event` may be null: then there is only the domain to say.
  Args(uint32_t domain, const EventAttributes* event) noexcept;
  // JSON object text, or empty when there is nothing to say.
  std::string_view json() const noexcept { return json_; }

 private:
  char text_[1024];
  std::string_view json_;
};

}  // namespace shp::inject::nvtx
