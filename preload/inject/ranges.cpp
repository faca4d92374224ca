#include "preload/inject/ranges.h"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>

#include "preload/marks.h"
#include "preload/thread_state.h"

namespace shp::recorder {

struct RangeStack {
  struct Entry {
    const void* domain;
    SpanId id;
  };
  uint32_t generation;  // whose ranges these are; others are nobody's now
  uint32_t depth;
  uint32_t beyond;  // pushed when it was full
  uint32_t reserved;
  Entry entries[(kRangeStackBytes - 16) / sizeof(Entry)];
};
static_assert(sizeof(RangeStack) <= kRangeStackBytes);

}  // namespace shp::recorder

namespace shp::inject {
namespace {

using recorder::RangeStack;
using recorder::SpanId;

constexpr uint32_t kMostRanges =
    sizeof(RangeStack::entries) / sizeof(RangeStack::Entry);

void* map_zeroes(uint64_t bytes) noexcept {
  const recorder::KeepErrno keep;
  void* at = mmap(nullptr,
                  bytes,
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1,
                  0);
  return at == MAP_FAILED ? nullptr : at;
}

// The thread's stack, empty when it holds an earlier session's ranges.
RangeStack* stack_for(uint32_t generation) noexcept {
  recorder::ThreadState* state = recorder::t_state;
  if (SHP_UNLIKELY(state == nullptr ||
                   state == &recorder::g_under_construction)) {
    return nullptr;
  }
  if (SHP_UNLIKELY(state->ranges == nullptr)) {
    state->ranges =
        static_cast<RangeStack*>(map_zeroes(recorder::kRangeStackBytes));
    if (state->ranges == nullptr) {
      return nullptr;
    }
  }
  RangeStack* stack = state->ranges;
  if (SHP_UNLIKELY(stack->generation != generation)) {
    stack->generation = generation;
    stack->depth = stack->beyond = 0;
  }
  return stack;
}

// ---- tables by key ----------------------------------------------------------

// A key lies within kWindow entries of its home, or there is no room for it:
// entries come and go without a chain that could break.
constexpr uint32_t kWindow = 64;
constexpr uint64_t kBusy = ~uint64_t{0};

uint32_t home_of(uint64_t key, uint32_t entries) noexcept {
  return static_cast<uint32_t>(key * 0x9e37'79b9'7f4a'7c15U >> 40) % entries;
}

struct OpenRange {
  std::atomic<uint64_t> key;  // 0: free; kBusy: being filled or emptied
  uint64_t start_ticks;
  uint32_t name;
  uint32_t generation;
  uint32_t args_bytes;
  uint32_t reserved;
  char args[kMostRangeArgs + 8];
};
static_assert(sizeof(OpenRange) == 256);

struct KnownHandle {
  std::atomic<uint64_t> key;
  std::atomic<uint32_t> name;
};

template <typename Entry, uint32_t kEntries>
struct KeyTable {
  std::atomic<Entry*> entries;

  // Made when it is first needed, and kept.
  Entry* make() noexcept {
    Entry* at = entries.load(std::memory_order_acquire);
    if (SHP_LIKELY(at != nullptr)) {
      return at;
    }
    auto* made = static_cast<Entry*>(map_zeroes(kEntries * sizeof(Entry)));
    if (made != nullptr && !entries.compare_exchange_strong(at, made)) {
      const recorder::KeepErrno keep;
      munmap(made, kEntries * sizeof(Entry));
      return at;
    }
    return made;
  }
  // Takes an entry whose key is `from` by storing `to` in it; nullptr: none.
  Entry* take(uint64_t home, uint64_t from, uint64_t to) noexcept {
    Entry* at = entries.load(std::memory_order_acquire);
    const uint32_t first = home_of(home, kEntries);
    for (uint32_t i = 0; at != nullptr && i < kWindow; ++i) {
      Entry& entry = at[(first + i) % kEntries];
      uint64_t expected = from;
      if (entry.key.load(std::memory_order_relaxed) == from &&
          entry.key.compare_exchange_strong(
              expected, to, std::memory_order_acquire)) {
        return &entry;
      }
    }
    return nullptr;
  }
  const Entry* find(uint64_t key) const noexcept {
    const Entry* at = entries.load(std::memory_order_acquire);
    const uint32_t first = home_of(key, kEntries);
    for (uint32_t i = 0; at != nullptr && i < kWindow; ++i) {
      const Entry& entry = at[(first + i) % kEntries];
      if (entry.key.load(std::memory_order_acquire) == key) {
        return &entry;
      }
    }
    return nullptr;
  }
};

constinit KeyTable<OpenRange, 4096> g_ranges{};
constinit KeyTable<KnownHandle, 65536> g_handles{};
constinit std::atomic<uint64_t> g_last_key{};

void lose_span() noexcept {
  recorder::running_arena().header->lost_no_ring.fetch_add(
      1, std::memory_order_relaxed);
}

}  // namespace

int push_range(uint32_t generation,
               const void* domain,
               uint32_t name,
               std::string_view json) noexcept {
  const SpanId id = json.empty()
                        ? recorder::begin(name, generation)
                        : recorder::begin_with_args(name, generation, json);
  RangeStack* stack = stack_for(generation);
  if (SHP_UNLIKELY(stack == nullptr)) {
    return -1;
  }
  if (SHP_UNLIKELY(stack->depth == kMostRanges)) {
    ++stack->beyond;  // its span stays open, which is counted
    return -1;
  }
  stack->entries[stack->depth] = {domain, id};
  return static_cast<int>(stack->depth++);
}

int pop_range(const void* domain) noexcept {
  const uint32_t generation = recorder::recording();
  RangeStack* stack = generation != 0 ? stack_for(generation) : nullptr;
  if (SHP_UNLIKELY(stack == nullptr)) {
    return -1;
  }
  if (SHP_UNLIKELY(stack->beyond != 0)) {
    --stack->beyond;
    return -1;
  }
  for (uint32_t at = stack->depth; at-- > 0;) {
    if (SHP_LIKELY(stack->entries[at].domain == domain)) {
      const SpanId id = stack->entries[at].id;
      for (--stack->depth; SHP_UNLIKELY(at < stack->depth); ++at) {
        stack->entries[at] = stack->entries[at + 1];
      }
      recorder::end(id);
      return static_cast<int>(stack->depth);
    }
  }
  return -1;
}

uint64_t new_range_key() noexcept {
  return g_last_key.fetch_add(1, std::memory_order_relaxed) + 1;
}

void start_range(uint32_t generation,
                 uint64_t key,
                 uint32_t name,
                 std::string_view json) noexcept {
  const uint64_t now = recorder::stamp_now(generation);
  if (key == 0 || key == kBusy || now == 0) {
    return;
  }
  OpenRange* range =
      g_ranges.make() != nullptr ? g_ranges.take(key, 0, kBusy) : nullptr;
  if (range == nullptr) {
    lose_span();
    return;
  }
  if (json.size() > kMostRangeArgs) {
    recorder::running_arena().header->bad_args.fetch_add(
        1, std::memory_order_relaxed);
    json = {};
  }
  range->start_ticks = now;
  range->name = name;
  range->generation = generation;
  range->args_bytes = static_cast<uint32_t>(json.size());
  std::memcpy(range->args, json.data(), json.size());
  range->key.store(key, std::memory_order_release);
}

void end_range(uint64_t key) noexcept {
  if (key == 0 || key == kBusy) {
    return;
  }
  OpenRange* range = g_ranges.take(key, key, kBusy);
  if (range == nullptr) {
    return;
  }
  const uint32_t generation = recorder::recording();
  if (generation != 0 && range->generation == generation) {
    recorder::write_span(range->name,
                         generation,
                         range->start_ticks,
                         {range->args, range->args_bytes});
  }
  range->key.store(0, std::memory_order_release);
}

bool keep_handle(const void* handle, uint32_t name) noexcept {
  const auto key = reinterpret_cast<uint64_t>(handle);
  if (key == 0 || g_handles.make() == nullptr) {
    return false;
  }
  // Another tool may give an old handle for a new name, and one twice.
  KnownHandle* entry = g_handles.take(key, key, kBusy);
  if (entry == nullptr) {
    entry = g_handles.take(key, 0, kBusy);
  }
  if (entry == nullptr) {
    return false;
  }
  entry->name.store(name, std::memory_order_relaxed);
  entry->key.store(key, std::memory_order_release);
  return true;
}

uint32_t name_of_handle(const void* handle) noexcept {
  const auto key = reinterpret_cast<uint64_t>(handle);
  const KnownHandle* entry = key != 0 ? g_handles.find(key) : nullptr;
  return entry != nullptr ? entry->name.load(std::memory_order_relaxed)
                          : kNoName;
}

}  // namespace shp::inject
