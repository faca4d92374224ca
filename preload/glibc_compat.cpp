// What the statically linked C++ runtime, or a newer glibc's headers, would ask
// of a glibc past 2.34, defined here in its place, so that libshp.so loads
// there wherever it was built. All of it is for slow paths.
//
//   _dl_find_object  (2.35) libgcc's unwinder: the object around an address.
//   __isoc23_strto*  (2.38) what strtol and its kind are called by in programs
//                    of g++ 13 and newer: they read "0b1" as binary, too.

#include <dlfcn.h>
#include <link.h>

#include <cstdint>

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* result;
};

bool covers(const dl_phdr_info& object, const Search& search) {
  const uintptr_t address = search.address;
  const ElfW(Phdr)* unwind = nullptr;
  bool inside = false;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    const uintptr_t start = object.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) {
      unwind = &header;
    } else if (header.p_type == PT_LOAD && address >= start &&
               address < start + header.p_memsz) {
      inside = true;
      search.result->dlfo_map_start = reinterpret_cast<void*>(start);
      search.result->dlfo_map_end =
          reinterpret_cast<void*>(start + header.p_memsz);
    }
  }
  if (!inside || unwind == nullptr) {
    return false;
  }
  search.result->dlfo_flags = 0;
  search.result->dlfo_link_map = nullptr;
  search.result->dlfo_eh_frame =
      reinterpret_cast<void*>(object.dlpi_addr + unwind->p_vaddr);
  return true;
}

int visit(dl_phdr_info* object, size_t, void* value) {
  auto& search = *static_cast<Search*>(value);
  return covers(*object, search) ? 1 : 0;
}

}  // namespace

extern "C" [[gnu::visibility("hidden")]] int _dl_find_object(
    void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}

// By their assembler names: here too the headers may rename what they declare.
extern "C" {
long old_strtol(const char*, char**, int) noexcept asm("strtol");
unsigned long old_strtoul(const char*, char**, int) noexcept asm("strtoul");
unsigned long long old_strtoull(const char*, char**, int) noexcept
    asm("strtoull");

[[gnu::visibility("hidden")]] long new_strtol(const char*, char**, int) noexcept
    asm("__isoc23_strtol");
[[gnu::visibility("hidden")]] unsigned long new_strtoul(const char*,
                                                        char**,
                                                        int) noexcept
    asm("__isoc23_strtoul");
[[gnu::visibility("hidden")]] unsigned long long new_strtoull(const char*,
                                                              char**,
                                                              int) noexcept
    asm("__isoc23_strtoull");

long new_strtol(const char* text, char** end, int base) noexcept {
  return old_strtol(text, end, base);
}
unsigned long new_strtoul(const char* text, char** end, int base) noexcept {
  return old_strtoul(text, end, base);
}
unsigned long long new_strtoull(const char* text,
                                char** end,
                                int base) noexcept {
  return old_strtoull(text, end, base);
}
}
