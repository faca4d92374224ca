// How annotation libraries (NVTX, ITT, mstx) are brought to load libshp.so:
// each reads a variable that names an injection library at its first call.
//
// Under SHP_INJECT=nvtx,itt,mstx the library's constructor points those
// variables to itself, before main and so before any thread. What a variable
// held before (nsys, VTune, msprof) goes into SHP_NEXT_NVTX, SHP_NEXT_ITT or
// SHP_NEXT_MSTX, which children inherit: that injection is loaded behind ours.
#pragma once

namespace shp::inject {

// From the library's constructor.
void point_variables_here() noexcept;

// Whether SHP_INJECT names `api`.
bool asked_for(const char* api) noexcept;

// `symbol` of the injection that the variable `name` names; nullptr when there
// is none, or it cannot be loaded, which is logged.
void* next_injection(const char* name, const char* symbol) noexcept;

}  // namespace shp::inject
