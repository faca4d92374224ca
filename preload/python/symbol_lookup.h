// find_loaded_symbol: dlsym(RTLD_DEFAULT, name) for processes that are none of
// our business: a name that is not there costs no malloc and leaves nothing for
// the program's own dlerror(). Walks the GNU hash tables of what is loaded.
//
// Used by the library's constructor to see whether this is a Python process.
#pragma once

namespace shp::python {

// Address of a function or object that some loaded object defines, or nullptr.
void* find_loaded_symbol(const char* name) noexcept;

}  // namespace shp::python
