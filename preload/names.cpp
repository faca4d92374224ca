#include "preload/names.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "preload/fork_wipe.h"
#include "preload/futex.h"
#include "preload/recorder.h"

namespace shp::recorder {
namespace {

constexpr std::string_view kTooMany = "(too many names)";
constexpr uint64_t kPopulateStep = 65536;

// The registry: three anonymous mappings, touched as they fill. `count` is
// stored last when a name is added, and the hash slot only then: whatever
// instant a fork copies, the copy is whole.
struct Registry {
  std::atomic<bool> ready;
  NameEntry* entries;            // id - 1 → where its text lies
  char* bytes;                   // texts, each followed by NUL
  std::atomic<uint32_t>* slots;  // open addressing, ids, 0 empty
  uint32_t capacity;
  uint32_t bytes_capacity;
  std::atomic<uint32_t> count;
  uint32_t bytes_used;
};
constinit Registry g_names{};

// The arena that names are copied to, and how far its pages are populated.
// Counts only while g_wiped.names_attached says so.
struct Target {
  ArenaHeader* header;
  NameEntry* names;
  char* name_bytes;
  ArenaGeometry geometry;
  uint64_t entries_populated;
  uint64_t bytes_populated;
};
constinit Target g_target{};

void* map_private(uint64_t bytes) {
  void* at = mmap(nullptr,
                  bytes,
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1,
                  0);
  return at == MAP_FAILED ? nullptr : at;
}

bool try_make_registry(uint32_t capacity, uint32_t bytes_capacity) {
  const uint64_t entry_bytes = uint64_t{capacity} * sizeof(NameEntry);
  const uint64_t slot_bytes = uint64_t{capacity} * 2 * sizeof(uint32_t);
  auto* all = static_cast<char*>(
      map_private(entry_bytes + slot_bytes + bytes_capacity));
  if (all == nullptr) {
    return false;
  }
  g_names.entries = reinterpret_cast<NameEntry*>(all);
  g_names.slots = reinterpret_cast<std::atomic<uint32_t>*>(all + entry_bytes);
  g_names.bytes = all + entry_bytes + slot_bytes;
  g_names.capacity = capacity;
  g_names.bytes_capacity = bytes_capacity;
  return true;
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0x9e37'79b9'7f4a'7c15 ^ text.size();
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0xff51'afd7'ed55'8ccd;
    hash ^= hash >> 32;
  }
  uint64_t word = 0;
  std::memcpy(&word, at, left);
  hash = (hash ^ word) * 0xc4ce'b9fe'1a85'ec53;
  return hash ^ (hash >> 29);
}

std::string_view text_of(uint32_t id) {
  const NameEntry& entry = g_names.entries[id - 1];
  return {g_names.bytes + entry.offset, entry.bytes};
}

// The id, or 0 with *slot at the place where it would go.
uint32_t look_up(std::string_view text, std::atomic<uint32_t>** slot) {
  const uint64_t mask = uint64_t{g_names.capacity} * 2 - 1;
  for (uint64_t i = hash_of(text);; ++i) {
    std::atomic<uint32_t>& at = g_names.slots[i & mask];
    const uint32_t id = at.load(std::memory_order_acquire);
    if (id == 0) {
      *slot = &at;
      return 0;
    }
    if (text_of(id) == text) {
      return id;
    }
  }
}

bool populate_to(void* base, uint64_t& done, uint64_t need, uint64_t capacity) {
  if (need <= done) {
    return true;
  }
  const uint64_t until = std::min(
      (need + kPopulateStep - 1) / kPopulateStep * kPopulateStep, capacity);
  if (need > until ||
      !populate(static_cast<char*>(base) + done, until - done)) {
    return false;
  }
  done = until;
  return true;
}

// Copies entries [from, to) of the registry, at the same indices and offsets.
bool copy_to_arena(uint32_t from, uint32_t to) {
  const ArenaGeometry& g = g_target.geometry;
  const NameEntry& last = g_names.entries[to - 1];
  const uint64_t bytes_end = uint64_t{last.offset} + last.bytes;
  if (to > g.name_capacity || bytes_end > g.name_bytes_capacity ||
      !populate_to(g_target.names,
                   g_target.entries_populated,
                   uint64_t{to} * sizeof(NameEntry),
                   uint64_t{g.name_capacity} * sizeof(NameEntry)) ||
      !populate_to(g_target.name_bytes,
                   g_target.bytes_populated,
                   bytes_end,
                   g.name_bytes_capacity)) {
    return false;
  }
  const uint32_t bytes_begin = g_names.entries[from].offset;
  std::memcpy(g_target.name_bytes + bytes_begin,
              g_names.bytes + bytes_begin,
              bytes_end - bytes_begin);
  std::memcpy(g_target.names + from,
              g_names.entries + from,
              (to - from) * sizeof(NameEntry));
  ArenaHeader& header = *g_target.header;
  header.name_bytes_used.store(static_cast<uint32_t>(bytes_end),
                               std::memory_order_relaxed);
  header.names_count.store(to, std::memory_order_release);
  return true;
}

// Adds a name that is not there. 0 when a table is full.
uint32_t append(std::string_view text, std::atomic<uint32_t>& slot) {
  const uint32_t count = g_names.count.load(std::memory_order_relaxed);
  const uint64_t bytes_end = uint64_t{g_names.bytes_used} + text.size() + 1;
  if (count >= g_names.capacity || bytes_end > g_names.bytes_capacity) {
    return 0;
  }
  std::memcpy(g_names.bytes + g_names.bytes_used, text.data(), text.size());
  g_names.bytes[bytes_end - 1] = '\0';
  g_names.entries[count] = {g_names.bytes_used,
                            static_cast<uint32_t>(text.size())};
  if (g_wiped.names_attached && !copy_to_arena(count, count + 1)) {
    return 0;
  }
  g_names.bytes_used = static_cast<uint32_t>(bytes_end);
  g_names.count.store(count + 1, std::memory_order_release);
  slot.store(count + 1, std::memory_order_release);
  return count + 1;
}

// Under the lock.
bool ensure_registry() {
  if (g_names.ready.load(std::memory_order_relaxed)) {
    return true;
  }
  bool made = false;
  for (unsigned halvings = 0; !made && halvings < 8; ++halvings) {
    made = try_make_registry(kMaxNames >> halvings,
                             kMaxNameTableBytes >> halvings);
  }
  if (!made) {
    return false;
  }
  std::atomic<uint32_t>* slot = nullptr;
  look_up(kTooMany, &slot);
  if (append(kTooMany, *slot) != kTooManyId) {
    return false;
  }
  g_names.ready.store(true, std::memory_order_release);
  return true;
}

std::string_view cut(std::string_view name) {
  if (name.size() <= kMaxNameBytes) {
    return name;
  }
  size_t end = kMaxNameBytes;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) {
    --end;
  }
  return name.substr(0, end);
}

uint32_t add_name(std::string_view name) {
  if (!wipe_on_fork()) {
    return kNoName;
  }
  ForkSafeLock lock(g_wiped.name_lock);
  if (!lock || !ensure_registry()) {
    return kNoName;
  }
  std::atomic<uint32_t>* slot = nullptr;
  const uint32_t known = look_up(name, &slot);
  if (known != 0) {
    return known;
  }
  const uint32_t added = append(name, *slot);
  if (added != 0) {
    return added;
  }
  if (g_wiped.names_attached) {
    g_target.header->names_lost.fetch_add(1, std::memory_order_relaxed);
  }
  return kTooManyId;
}

}  // namespace

uint32_t intern_name(std::string_view name) noexcept {
  if (name.empty() || std::memchr(name.data(), '\0', name.size()) != nullptr) {
    return kNoName;
  }
  name = cut(name);
  if (g_names.ready.load(std::memory_order_acquire)) {
    std::atomic<uint32_t>* slot = nullptr;
    const uint32_t known = look_up(name, &slot);
    if (known != 0) {
      return known;
    }
  }
  const int saved = errno;
  const uint32_t added = add_name(name);
  errno = saved;
  return added;
}

uint32_t intern_c_name(const char* name) noexcept {
  if (name == nullptr) {
    return kNoName;
  }
  ThreadState* state = t_state;
  if (state == nullptr || state->arena_serial == 0) {
    return intern_name(name);  // no state yet, or one under construction
  }
  const auto key = reinterpret_cast<uintptr_t>(name);
  CachedName& cached =
      state->name_cache[(key ^ (key >> 9)) % kNameCacheEntries];
  if (SHP_LIKELY(cached.pointer == name &&
                 std::strcmp(cached.text, name) == 0)) {
    return cached.id;
  }
  const uint32_t id = intern_name(name);
  // A cut name's text differs from what it was cut from: never a hit.
  if (id > kTooManyId) {
    // A signal handler may read between two of these stores; the pointer goes
    // first to nothing and comes last.
    cached.pointer = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    cached.text = text_of(id).data();
    cached.id = id;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    cached.pointer = name;
  }
  return id;
}

std::string_view name_text(uint32_t id) noexcept {
  const bool known = g_names.ready.load(std::memory_order_acquire) &&
                     id != kNoName &&
                     id <= g_names.count.load(std::memory_order_acquire);
  return known ? text_of(id) : std::string_view();
}

bool attach_names(const ClientArena& arena) noexcept {
  ForkSafeLock lock(g_wiped.name_lock);
  if (!lock || !ensure_registry()) {
    return false;
  }
  g_target.header = arena.header;
  g_target.names = arena.names;
  g_target.name_bytes = arena.name_bytes;
  g_target.geometry = arena.geometry;
  g_target.entries_populated = 0;
  g_target.bytes_populated = 0;
  g_wiped.names_attached =
      copy_to_arena(0, g_names.count.load(std::memory_order_relaxed));
  return g_wiped.names_attached;
}

}  // namespace shp::recorder
