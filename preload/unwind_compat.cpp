// libgcc's unwinder, linked in statically, asks glibc for the object around an
// address by _dl_find_object, which glibc has since 2.35. This definition takes
// its place, so that libshp.so loads on 2.34: it is asked only when one of our
// own slow paths throws (no memory, Boost), so its speed does not matter.

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
