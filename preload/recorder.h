// The span calls, inline: what C, C++, Python and the injections all end in.
//
// Called on any thread of a traced process, inside signal handlers too. Hot
// path rules (no allocation, lock, log or system call, errno kept) hold for
// everything in this header; what it calls elsewhere runs once a
// thread, once a block or in rare cases, keeps errno as well, and never fails
// visibly: it records or counts a loss.
//
// A span's way through here: `begin` takes an OpenSlot in the thread's ring
// page and stamps it; `end` stamps again, writes one 32-byte record to the
// thread's ring, and frees the slot.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/clock.h"
#include "common/shm/arena_abi.h"
#include "common/shm/ring_writer.h"
#include "preload/arena_client.h"

#define SHP_LIKELY(x) __builtin_expect(!!(x), 1)
#define SHP_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace shp::recorder {

// >= 0 while the span is open, valid on its thread and in its session only;
// -1: nothing was recorded. Bits: 16 slot, 27 count, 20 thread claim.
using SpanId = int64_t;
inline constexpr SpanId kNotRecorded = -1;
inline constexpr uint32_t kSlotBits = 16;
inline constexpr uint32_t kNoSlot = 0xffff;

// How far a process under SHP_OUTPUT_DIR has come with its first span.
enum StartByItself : uint32_t { kNotTried = 0, kStarting = 1, kTried = 2 };

// One page that fork empties in the child (MADV_WIPEONFORK): a child finds
// itself not recording without a handler having run, raw clone included.
struct alignas(kPageBytes) ForkWiped {
  // The running arena's gate word, or nullptr when this process has no arena.
  std::atomic<const std::atomic<uint32_t>*> gate;
  std::atomic<uint32_t> name_lock;     // names.cpp
  std::atomic<uint32_t> session_lock;  // session.cpp
  bool names_attached;                 // names.cpp; under its lock
  std::atomic<uint32_t> by_itself;     // session.cpp: StartByItself
  std::atomic<uint32_t> starter;       // its thread, while kStarting
  // Spans that came while that start was under way.
  std::atomic<uint64_t> lost_while_starting;
  // session.cpp; under its lock: the session that runs here.
  bool session_active;
};

// What survives a fork.
struct Process {
  // True while a span call without an arena should try to start a session:
  // SHP_OUTPUT_DIR is set. A forked child tries for itself.
  bool starts_by_itself;
  // HOST_SERVICE_PROFILER_ENABLE=0: nothing ever records.
  bool disabled;
  // shp.h's callers look at this before they call: 0 while no span call could
  // record. In a forked child it may say 1 for nothing, which costs a call.
  std::atomic<uint32_t> live;
  // The arena of this process, or of the parent that forked it: valid only
  // while g_wiped.gate is set. `serial` counts arenas, through forks too.
  ClientArena* arena;
  uint32_t serial;
  std::atomic<uint32_t> next_ring;  // first ring index that was never claimed
};

extern ForkWiped g_wiped;
extern Process g_process;

// The arena behind a gate that a relaxed load found set. For slow paths: the
// acquire is what orders the arena's memory and `serial` for a thread that has
// no ring in it yet (no instruction on x86, one on aarch64).
inline ClientArena& running_arena() noexcept {
  static_cast<void>(g_wiped.gate.load(std::memory_order_acquire));
  return *g_process.arena;
}

// intern_c_name's cache: pointers seen, and the registry's text of each.
struct CachedName {
  const char* pointer;
  const char* text;
  uint32_t id;
};
inline constexpr uint32_t kNameCacheEntries = 128;

// A span beyond the ring page's slots: kept here only.
struct ExtraSlot {
  uint64_t id;  // 0: free
  uint64_t start_ticks;
  uint32_t name;
  uint32_t next_free;
};

struct CallStack;
struct RangeStack;

// Everything a thread needs, private to it; the ring page it points to is in
// the arena. Made by the thread's first span, freed when the thread exits.
struct ThreadState {
  RingWriter<BlockPool> writer;
  OpenSlot* slots;            // ring.open
  uint64_t next_id;           // the next span's id, slot bits 0
  uint32_t generation;        // gate value that this state was set up for
  uint16_t free_head;         // first free slot, kNoSlot when none
  uint8_t hardware_clock;     // stamps by counter, not clock_gettime
  std::atomic<uint8_t> busy;  // inside a span call: nested ones are refused
  uint16_t next_free[kOpenSlots];
  uint8_t slot_args[kOpenSlots];  // 1: args wait in args_text

  // Rare paths only.
  uint32_t arena_serial;        // Process::serial that this state belongs to
  ExtraSlot* extra;             // kExtraSlots, mapped when first needed
  uint32_t extra_used;          // ever taken
  uint32_t extra_free;          // list of returned ones, kNoExtra
  char* args_text[kOpenSlots];  // a mapping each, span_args.cpp
  CallStack* calls;             // a mapping, python/call_events.cpp
  RangeStack* ranges;           // a mapping, inject/ranges.cpp
  CachedName name_cache[kNameCacheEntries];
};
inline constexpr uint32_t kExtraSlots = 65535 - kOpenSlots;
inline constexpr uint32_t kCallStackBytes = 1U << 18;
inline constexpr uint32_t kRangeStackBytes = 1U << 14;

// The library's one word of static TLS. initial-exec: one load off %fs, and
// eight bytes always fit the surplus that glibc keeps for late dlopen.
extern __thread ThreadState* t_state __attribute__((tls_model("initial-exec")));

// ---- rare paths: rare_spans.cpp, span_args.cpp, thread_state.cpp
// ----------------------------------------- All of these keep errno.
SpanId begin_slow(uint32_t name, uint32_t generation) noexcept;
uint32_t start_by_itself() noexcept;  // session.cpp
void end_slow(SpanId id, uint32_t generation, uint64_t now) noexcept;

// Starts a span whose args, JSON object text, are known now; they are copied.
// More than kMaxArgsBytes of them count as bad.
SpanId begin_with_args(uint32_t name,
                       uint32_t generation,
                       std::string_view json) noexcept;

// Args of an ended span, at most kMaxArgsBytes of JSON object text. `deferred`
// != 0: the args come later under that key. Both may be absent. Returns whether
// a record was written: only then may add_deferred (session.h) follow.
struct EndArgs {
  std::string_view json;
  uint64_t deferred = 0;
  bool bad = false;        // they could not be encoded: counted, span kept
  uint64_t end_ticks = 0;  // stamp() before they were encoded; 0: stamp now
};
bool end_with_args(SpanId id, const EndArgs& args) noexcept;

// Appends the args that were promised under `key` to the calling thread's ring,
// gate closed or not (session.cpp, between freeze and publish). False when
// there was no room.
bool write_deferred(uint32_t generation,
                    uint64_t key,
                    std::string_view json) noexcept;

// The library's part in a thread's exit (a pthread key's destructor).
bool watch_thread_exits() noexcept;

// A span that was refused for its name. Counts; returns kNotRecorded.
SpanId refuse_name() noexcept;

// ---- the hot path -----------------------------------------------------------

// The running session's generation, 0 when none records.
inline uint32_t recording() noexcept {
  const auto* gate = g_wiped.gate.load(std::memory_order_relaxed);
  if (SHP_UNLIKELY(gate == nullptr)) {
    return 0;
  }
  return gate->load(std::memory_order_relaxed);
}

// The same, but a process's first span under SHP_OUTPUT_DIR starts its session
// here (once: it may take the milliseconds of reaching the daemon).
inline uint32_t recording_or_start() noexcept {
  const uint32_t generation = recording();
  return SHP_LIKELY(generation != 0)               ? generation
         : SHP_LIKELY(!g_process.starts_by_itself) ? 0
                                                   : start_by_itself();
}

inline uint64_t stamp(const ThreadState& state) noexcept {
  return SHP_LIKELY(state.hardware_clock != 0)
             ? hardware_ticks()
             : static_cast<uint64_t>(monotonic_ns());
}

// `busy` is only ever seen by this thread and its signal handlers, so ordering
// it against the compiler is enough.
inline void enter(ThreadState& state) noexcept {
  state.busy.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
inline void leave(ThreadState& state) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.busy.store(0, std::memory_order_relaxed);
}

// Starts a span named by a name id (names.h). `generation` is what recording()
// or recording_or_start() answered, not 0.
inline SpanId begin(uint32_t name, uint32_t generation) noexcept {
  ThreadState* state = t_state;
  if (SHP_UNLIKELY(state == nullptr || state->generation != generation ||
                   state->busy.load(std::memory_order_relaxed) != 0 ||
                   state->free_head == kNoSlot)) {
    return begin_slow(name, generation);
  }
  enter(*state);
  const uint16_t index = state->free_head;
  state->free_head = state->next_free[index];
  OpenSlot& slot = state->slots[index];
  const uint64_t id = state->next_id | index;
  state->next_id += 1U << kSlotBits;
  slot.name = name;
  slot.start_ticks = stamp(*state);
  slot.id.store(id, std::memory_order_release);
  leave(*state);
  return static_cast<SpanId>(id);
}

// Ends a span. -1, an ended and a foreign id do nothing.
inline void end(SpanId id) noexcept {
  const uint32_t generation = recording();
  ThreadState* state = t_state;
  if (SHP_UNLIKELY(generation == 0 || id < 0 || state == nullptr)) {
    return;
  }
  const uint64_t now = stamp(*state);
  const auto index = static_cast<uint32_t>(id) & kNoSlot;
  if (SHP_UNLIKELY(state->generation != generation ||
                   state->busy.load(std::memory_order_relaxed) != 0 ||
                   index >= kOpenSlots || state->slot_args[index] != 0)) {
    return end_slow(id, generation, now);
  }
  OpenSlot& slot = state->slots[index];
  if (SHP_UNLIKELY(slot.id.load(std::memory_order_relaxed) !=
                   static_cast<uint64_t>(id))) {
    return;
  }
  enter(*state);
  Record* record = state->writer.reserve(1);
  if (SHP_LIKELY(record != nullptr)) {
    record->kind = kSpan;
    record->flags = 0;
    record->units = 1;
    record->name = slot.name;
    record->start_ticks = slot.start_ticks;
    record->end_ticks = now;
    record->id = static_cast<uint64_t>(id);
    state->writer.publish(1);
  } else {
    auto& overflow = state->writer.ring().overflow;
    overflow.store(overflow.load(std::memory_order_relaxed) + 1,
                   std::memory_order_relaxed);
  }
  slot.id.store(0, std::memory_order_release);
  state->next_free[index] = state->free_head;
  state->free_head = static_cast<uint16_t>(index);
  leave(*state);
}

}  // namespace shp::recorder
