// The span calls, inline: what C, C++, Python and the injections all end in.
//
// Called on any thread of a traced process, inside signal handlers too. Hot
// path rules (no allocation, lock, log or system call, errno kept) hold for
// everything in this header; what it calls in thread_state.cpp runs once a
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

// One page that fork empties in the child (MADV_WIPEONFORK): a child finds
// itself not recording without a handler having run, raw clone included.
struct alignas(kPageBytes) ForkWiped {
  // The running arena's gate word, or nullptr when this process has no arena.
  std::atomic<const std::atomic<uint32_t>*> gate;
  std::atomic<uint32_t> name_lock;     // names.cpp
  std::atomic<uint32_t> session_lock;  // session.cpp
  uint32_t alive;                      // 1 in the process that set it up
};

// What survives a fork.
struct Process {
  // True while a span call without an arena should try to start a session:
  // SHP_OUTPUT_DIR is set and it has not failed yet.
  std::atomic<bool> starts_by_itself;
  ClockKind clock_kind;
};

extern ForkWiped g_wiped;
extern Process g_process;

// Everything a thread needs, private to it; the ring page it points to is in
// the arena. Made by the thread's first span, freed when the thread exits.
struct ThreadState {
  RingWriter<BlockPool> writer;
  OpenSlot* slots;          // ring.open
  uint64_t next_id;         // the next span's id, slot bits 0
  uint32_t generation;      // gate value that this state was set up for
  uint16_t free_head;       // first free slot, kNoSlot when none
  uint8_t hardware_clock;   // stamps by counter, not clock_gettime
  std::atomic<uint8_t> busy;  // inside a span call: nested ones are refused
  uint16_t next_free[kOpenSlots];
  uint8_t slot_args[kOpenSlots];  // 1: args wait in thread_args
};

// The library's one word of static TLS. initial-exec: one load off %fs, and
// eight bytes always fit the surplus that glibc keeps for late dlopen.
extern thread_local ThreadState* t_state
    __attribute__((tls_model("initial-exec")));

// ---- rare paths, thread_state.cpp -----------------------------------------
// All of these keep errno.
SpanId begin_slow(uint32_t name, uint32_t generation) noexcept;
SpanId begin_unattached(uint32_t name) noexcept;
void end_slow(SpanId id, uint32_t generation, uint64_t now) noexcept;

// Args of an ended span, at most kMaxArgsBytes of JSON object text. `deferred`
// != 0: the args come later under that key. Both may be absent.
struct EndArgs {
  std::string_view json;
  uint64_t deferred = 0;
  bool bad = false;  // they could not be encoded: counted, span kept
};
void end_with_args(SpanId id, const EndArgs& args) noexcept;

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

// Starts a span named by a name id (names.h). `generation` is recording()'s
// answer, not 0.
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
