#include "preload/python/symbol_lookup.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace shp::python {
namespace {

struct Wanted {
  const char* name;
  uint32_t hash;
  void* address;
};

uint32_t gnu_hash(const char* name) noexcept {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

// The three tables that a look-up needs; addresses are absolute.
struct Tables {
  const uint32_t* hash = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  bool complete() const { return hash != nullptr && symbols && strings; }
};

Tables tables_of(const dl_phdr_info& object) noexcept {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr +
                                                   object.dlpi_phdr[i].p_vaddr);
    }
  }
  Tables tables;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    // glibc relocates these in place; the vDSO's stay offsets.
    ElfW(Addr) at = dynamic->d_un.d_ptr;
    at += at < object.dlpi_addr ? object.dlpi_addr : 0;
    if (dynamic->d_tag == DT_GNU_HASH) {
      tables.hash = reinterpret_cast<const uint32_t*>(at);
    } else if (dynamic->d_tag == DT_SYMTAB) {
      tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    } else if (dynamic->d_tag == DT_STRTAB) {
      tables.strings = reinterpret_cast<const char*>(at);
    }
  }
  return tables;
}

// Layout of DT_GNU_HASH: bucket count, first hashed symbol, bloom words, bloom
// shift; the bloom filter; the buckets; a hash per symbol, bit 0 ends a chain.
const ElfW(Sym) * find_in(const Tables& tables, const Wanted& wanted) noexcept {
  const uint32_t buckets_count = tables.hash[0];
  const uint32_t first_symbol = tables.hash[1];
  const uint32_t bloom_words = tables.hash[2];
  const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.hash + 4);
  constexpr uint32_t kBits = sizeof(ElfW(Addr)) * 8;
  if (buckets_count == 0 || bloom_words == 0) {
    return nullptr;
  }
  const ElfW(Addr) word = bloom[wanted.hash / kBits % bloom_words];
  const uint32_t second = wanted.hash >> tables.hash[3];
  if ((word >> (wanted.hash % kBits) & word >> (second % kBits) & 1) == 0) {
    return nullptr;
  }
  const auto* buckets = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
  uint32_t index = buckets[wanted.hash % buckets_count];
  if (index < first_symbol) {
    return nullptr;
  }
  const uint32_t* chain = buckets + buckets_count;
  for (;; ++index) {
    const uint32_t hash = chain[index - first_symbol];
    const ElfW(Sym)& symbol = tables.symbols[index];
    if ((hash | 1) == (wanted.hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        std::strcmp(tables.strings + symbol.st_name, wanted.name) == 0) {
      return &symbol;
    }
    if ((hash & 1) != 0) {
      return nullptr;
    }
  }
}

int look_into(dl_phdr_info* object, size_t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  const Tables tables = tables_of(*object);
  if (!tables.complete()) {
    return 0;
  }
  const ElfW(Sym)* symbol = find_in(tables, wanted);
  if (symbol == nullptr) {
    return 0;
  }
  wanted.address =
      reinterpret_cast<void*>(object->dlpi_addr + symbol->st_value);
  return 1;
}

}  // namespace

void* find_loaded_symbol(const char* name) noexcept {
  Wanted wanted{name, gnu_hash(name), nullptr};
  dl_iterate_phdr(look_into, &wanted);
  return wanted.address;
}

}  // namespace shp::python
