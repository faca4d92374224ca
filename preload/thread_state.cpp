#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "preload/names.h"
#include "preload/recorder.h"

namespace shp::recorder {

// fork must empty this page and nothing else: it fills a page of .bss.
// constinit: a constructor that ran after on_load would undo what that set.
constinit ForkWiped g_wiped{};
constinit Process g_process{};
__thread ThreadState* t_state __attribute__((tls_model("initial-exec")));

namespace {

constexpr uint32_t kNoExtra = 0xffff'ffff;
constexpr uint32_t kClaimBits = 20;
constexpr uint32_t kClaimShift = 43;
// A record with its payload: one unit, then 4 bytes of length and the text.
constexpr uint32_t kPartBytes = kMaxPayloadBytes - 64;

// Stands in t_state while a thread's real state is being made, so that a
// signal handler inside that finds the thread busy. generation 0 never matches.
constinit ThreadState g_under_construction{};

pthread_key_t g_exit_key;
std::atomic<bool> g_exit_key_made;
std::atomic<uint32_t> g_claims;

class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

// Counters that only one thread writes need no read-modify-write.
template <typename T>
void add_own(std::atomic<T>& counter, T delta) {
  counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + delta),
                std::memory_order_relaxed);
}

bool current(const ThreadState& state) {
  return state.arena_serial == g_process.serial &&
         g_wiped.gate.load(std::memory_order_relaxed) != nullptr;
}

uint32_t units_for(uint64_t payload) {
  return static_cast<uint32_t>(1 + (payload + kRecordBytes - 1) / kRecordBytes);
}

// ---- claiming a ring
// ---------------------------------------------------------

void note_ring_used(ArenaHeader& header, uint32_t index) {
  uint32_t high = header.rings_high.load(std::memory_order_relaxed);
  while (high <= index && !header.rings_high.compare_exchange_weak(
                              high, index + 1, std::memory_order_release)) {
  }
}

uint32_t claim_ring(ClientArena& arena) {
  ArenaHeader& header = *arena.header;
  const uint32_t high = header.rings_high.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < high; ++i) {
    uint32_t expected = kFree;
    auto& state = arena.rings[i].state;
    if (state.load(std::memory_order_relaxed) == kFree &&
        state.compare_exchange_strong(
            expected, kClaimed, std::memory_order_acquire)) {
      return i;
    }
  }
  const uint32_t index =
      g_process.next_ring.fetch_add(1, std::memory_order_relaxed);
  if (index >= arena.geometry.max_rings ||
      !populate(&arena.rings[index], sizeof(RingHeader))) {
    g_process.next_ring.fetch_sub(1, std::memory_order_relaxed);
    return kNoBlock;
  }
  arena.rings[index].state.store(kClaimed, std::memory_order_relaxed);
  note_ring_used(header, index);
  return index;
}

void describe_thread(RingHeader& ring) {
  ring.tid.store(static_cast<uint32_t>(syscall(SYS_gettid)),
                 std::memory_order_relaxed);
  char name[sizeof(ring.thread_name)] = {};
  prctl(PR_GET_NAME, name);
  std::memcpy(ring.thread_name, name, sizeof(name));
}

void reset_slots(ThreadState& state) {
  for (uint32_t i = 0; i < kOpenSlots; ++i) {
    state.slots[i].id.store(0, std::memory_order_release);
    state.next_free[i] = static_cast<uint16_t>(i + 1);
    state.slot_args[i] = 0;
  }
  state.next_free[kOpenSlots - 1] = kNoSlot;
  state.free_head = 0;
  for (uint32_t i = 0; i < state.extra_used; ++i) {
    state.extra[i].id = 0;
  }
  state.extra_used = 0;
  state.extra_free = kNoExtra;
  state.writer.ring().open_beyond.store(0, std::memory_order_relaxed);
}

void take_new_ids(ThreadState& state) {
  const uint64_t claim =
      (g_claims.fetch_add(1, std::memory_order_relaxed) + 1) &
      ((1U << kClaimBits) - 1);
  state.next_id = (claim << kClaimShift) | (uint64_t{1} << kSlotBits);
}

bool mark_session(ThreadState& state, uint32_t generation) {
  Record* record = state.writer.reserve(1);
  if (record == nullptr) {
    return false;
  }
  *record = Record{kSession, 0, 1, generation, 0, 0, 0};
  state.writer.publish(1);
  reset_slots(state);
  take_new_ids(state);
  state.writer.ring().session.store(generation, std::memory_order_release);
  state.generation = generation;
  return true;
}

ThreadState* map_state() {
  void* at = mmap(nullptr,
                  sizeof(ThreadState),
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS,
                  -1,
                  0);
  return at == MAP_FAILED ? nullptr : new (at) ThreadState();
}

bool open_ring(ThreadState& state, uint32_t generation) {
  ClientArena& arena = *g_process.arena;
  const uint32_t index = claim_ring(arena);
  if (index == kNoBlock) {
    return false;
  }
  RingHeader& ring = arena.rings[index];
  ring.session.store(0, std::memory_order_relaxed);
  if (!state.writer.open(arena.pool, ring, index)) {
    ring.state.store(kFree, std::memory_order_release);
    return false;
  }
  describe_thread(ring);
  state.slots = ring.open;
  state.hardware_clock =
      arena.header->clock_kind != static_cast<uint32_t>(ClockKind::kMonotonic);
  state.arena_serial = g_process.serial;
  return mark_session(state, generation);
}

// What stands before the text in a slot's mapping.
struct KeptArgs {
  uint32_t mapped_bytes;
  uint32_t length;
};

uint32_t mapped_bytes(const char* kept) {
  return reinterpret_cast<const KeptArgs*>(kept)->mapped_bytes;
}

void unmap_args(char*& kept) {
  if (kept != nullptr) {
    munmap(kept, mapped_bytes(kept));
    kept = nullptr;
  }
}

void unmap_extras(ThreadState& state) {
  if (state.extra != nullptr) {
    munmap(state.extra, sizeof(ExtraSlot) * kExtraSlots);
    state.extra = nullptr;
  }
  for (char*& kept : state.args_text) {
    unmap_args(kept);
  }
}

// A state for this thread in the running arena; nullptr when the arena or the
// process is out of something. A state that a fork brought along is made anew:
// its ring is the parent's.
ThreadState* make_state(uint32_t generation) {
  ThreadState* state = t_state;
  t_state = &g_under_construction;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (state == nullptr) {
    state = map_state();
  } else {
    unmap_extras(*state);
    state = new (state) ThreadState();
  }
  if (state != nullptr && !open_ring(*state, generation)) {
    munmap(state, sizeof(ThreadState));
    state = nullptr;
  }
  if (state != nullptr && g_exit_key_made.load(std::memory_order_acquire)) {
    pthread_setspecific(g_exit_key, state);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_state = state;
  return state;
}

// At thread exit. A thread that records again in a later destructor gets a new
// state, and glibc comes back for it.
void on_thread_exit(void* value) {
  const KeepErrno keep;
  auto* state = static_cast<ThreadState*>(value);
  t_state = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (current(*state)) {
    state->writer.ring().state.store(kReleased, std::memory_order_release);
  }
  unmap_extras(*state);
  munmap(state, sizeof(ThreadState));
}

// The calling thread's state, ready for `generation`, or nullptr: counted.
ThreadState* ready_state(uint32_t generation) {
  ThreadState* state = t_state;
  ArenaHeader& header = *g_process.arena->header;
  if (state == &g_under_construction) {
    header.lost_no_ring.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  if (state == nullptr || !current(*state)) {
    state = make_state(generation);
    if (state == nullptr) {
      header.lost_no_ring.fetch_add(1, std::memory_order_relaxed);
    }
    return state;
  }
  if (state->busy.load(std::memory_order_relaxed) != 0) {
    add_own(state->writer.ring().reentrant, uint64_t{1});
    return nullptr;
  }
  if (state->generation != generation) {
    enter(*state);
    const bool marked = mark_session(*state, generation);
    leave(*state);
    if (!marked) {
      add_own(state->writer.ring().overflow, uint64_t{1});
      return nullptr;
    }
  }
  return state;
}

// ---- spans beyond the slots
// --------------------------------------------------

ExtraSlot* take_extra(ThreadState& state, uint32_t& index) {
  if (state.extra == nullptr) {
    void* at = mmap(nullptr,
                    sizeof(ExtraSlot) * kExtraSlots,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1,
                    0);
    if (at == MAP_FAILED) {
      return nullptr;
    }
    state.extra = static_cast<ExtraSlot*>(at);
  }
  if (state.extra_free != kNoExtra) {
    index = state.extra_free;
    state.extra_free = state.extra[index].next_free;
  } else if (state.extra_used < kExtraSlots) {
    index = state.extra_used++;
  } else {
    return nullptr;
  }
  return &state.extra[index];
}

SpanId begin_extra(ThreadState& state, uint32_t name) {
  uint32_t index = 0;
  ExtraSlot* slot = take_extra(state, index);
  if (slot == nullptr) {
    add_own(state.writer.ring().overflow, uint64_t{1});
    return kNotRecorded;
  }
  slot->name = name;
  slot->id = state.next_id | (index + kOpenSlots);
  state.next_id += 1U << kSlotBits;
  add_own(state.writer.ring().open_beyond, 1U);
  slot->start_ticks = stamp(state);
  return static_cast<SpanId>(slot->id);
}

// ---- records with payload
// ------------------------------------------------------

// Where an open span's name and start are, and how it is closed again.
struct OpenSpan {
  uint32_t name = 0;
  uint64_t start_ticks = 0;
};

bool find_open(const ThreadState& state, SpanId id, OpenSpan& out) {
  const auto index = static_cast<uint32_t>(id) & kNoSlot;
  if (index < kOpenSlots) {
    const OpenSlot& slot = state.slots[index];
    out = {slot.name, slot.start_ticks};
    return slot.id.load(std::memory_order_relaxed) == static_cast<uint64_t>(id);
  }
  if (index - kOpenSlots >= state.extra_used) {
    return false;
  }
  const ExtraSlot& slot = state.extra[index - kOpenSlots];
  out = {slot.name, slot.start_ticks};
  return slot.id == static_cast<uint64_t>(id);
}

void close_open(ThreadState& state, SpanId id) {
  const auto index = static_cast<uint32_t>(id) & kNoSlot;
  if (index < kOpenSlots) {
    state.slots[index].id.store(0, std::memory_order_release);
    state.slot_args[index] = 0;
    state.next_free[index] = state.free_head;
    state.free_head = static_cast<uint16_t>(index);
    return;
  }
  ExtraSlot& slot = state.extra[index - kOpenSlots];
  slot.id = 0;
  slot.next_free = state.extra_free;
  state.extra_free = index - kOpenSlots;
  add_own(state.writer.ring().open_beyond, 0xffff'ffffU);
}

char* put_text(char* at, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  std::memcpy(at, &length, sizeof(length));
  std::memcpy(at + sizeof(length), text.data(), text.size());
  return at + sizeof(length) + text.size();
}

// Sends what does not fit one record ahead; `text` is left empty. False: full.
bool write_parts(ThreadState& state, uint64_t id, std::string_view& text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kPartBytes);
    const uint32_t units = units_for(sizeof(uint32_t) + part.size());
    Record* record = state.writer.reserve(units);
    if (record == nullptr) {
      return false;
    }
    *record = Record{kArgsPart, 0, static_cast<uint16_t>(units), 0, 0, 0, id};
    put_text(reinterpret_cast<char*>(record + 1), part);
    state.writer.publish(units);
    text.remove_prefix(part.size());
  }
  return true;
}

struct Payload {
  uint64_t key = 0;  // kHasDeferred's or kDeferred's
  std::string_view json;
};

bool write_record(ThreadState& state, Record head, Payload payload) {
  uint64_t bytes = payload.key != 0 ? sizeof(uint64_t) : 0;
  if (payload.json.size() > kPartBytes) {
    if (!write_parts(state, head.id, payload.json)) {
      return false;
    }
    head.flags = static_cast<uint8_t>(head.flags | kHasParts);
  } else if (!payload.json.empty()) {
    head.flags = static_cast<uint8_t>(head.flags | kHasArgs);
    bytes += sizeof(uint32_t) + payload.json.size();
  }
  head.units = static_cast<uint16_t>(units_for(bytes));
  Record* record = state.writer.reserve(head.units);
  if (record == nullptr) {
    return false;
  }
  *record = head;
  char* at = reinterpret_cast<char*>(record + 1);
  if (payload.key != 0) {
    std::memcpy(at, &payload.key, sizeof(payload.key));
    at += sizeof(payload.key);
  }
  if ((head.flags & kHasArgs) != 0) {
    put_text(at, payload.json);
  }
  state.writer.publish(head.units);
  return true;
}

// Whether a record was written.
bool finish_span(ThreadState& state,
                 SpanId id,
                 uint64_t now,
                 const EndArgs& args) {
  OpenSpan span;
  if (!find_open(state, id, span)) {
    return false;
  }
  enter(state);
  Record head{
      kSpan, 0, 1, span.name, span.start_ticks, now, static_cast<uint64_t>(id)};
  EndArgs kept = args;
  if (kept.json.size() > kMaxArgsBytes) {
    kept.json = {};
    kept.bad = true;
  }
  if (kept.bad) {
    head.flags = kBadArgs;
  }
  if (kept.deferred != 0) {
    head.flags = static_cast<uint8_t>(head.flags | kHasDeferred);
  }
  const bool written = write_record(state, head, {kept.deferred, kept.json});
  if (!written) {
    add_own(state.writer.ring().overflow, uint64_t{1});
  }
  close_open(state, id);
  leave(state);
  return written;
}

// Args that were given at the start wait in a mapping of their slot's own, kept
// for the next: no malloc, which a signal handler might have interrupted.
bool keep_args(ThreadState& state, uint32_t index, std::string_view json) {
  char*& kept = state.args_text[index];
  if (kept != nullptr && mapped_bytes(kept) < sizeof(KeptArgs) + json.size()) {
    unmap_args(kept);
  }
  if (kept == nullptr) {
    const uint64_t bytes = (sizeof(KeptArgs) + json.size() + kPageBytes - 1) &
                           ~uint64_t{kPageBytes - 1};
    void* at = mmap(nullptr,
                    bytes,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS,
                    -1,
                    0);
    if (at == MAP_FAILED) {
      return false;
    }
    kept = static_cast<char*>(at);
    new (kept) KeptArgs{static_cast<uint32_t>(bytes), 0};
  }
  auto* header = reinterpret_cast<KeptArgs*>(kept);
  header->length = static_cast<uint32_t>(json.size());
  std::memcpy(kept + sizeof(KeptArgs), json.data(), json.size());
  state.slot_args[index] = 1;
  return true;
}

std::string_view kept_args(const ThreadState& state, uint32_t index) {
  const char* kept = state.args_text[index];
  return {kept + sizeof(KeptArgs),
          reinterpret_cast<const KeptArgs*>(kept)->length};
}

}  // namespace

SpanId begin_slow(uint32_t name, uint32_t generation) noexcept {
  const KeepErrno keep;
  ThreadState* state = ready_state(generation);
  if (state == nullptr) {
    return kNotRecorded;
  }
  if (state->free_head != kNoSlot) {
    return begin(name, generation);
  }
  enter(*state);
  const SpanId id = begin_extra(*state, name);
  leave(*state);
  return id;
}

void end_slow(SpanId id, uint32_t generation, uint64_t now) noexcept {
  const KeepErrno keep;
  ThreadState* state = t_state;
  if (state == &g_under_construction || state->generation != generation ||
      !current(*state) || state->busy.load(std::memory_order_relaxed) != 0) {
    return;
  }
  EndArgs args;
  const auto index = static_cast<uint32_t>(id) & kNoSlot;
  OpenSpan span;
  if (index < kOpenSlots && state->slot_args[index] != 0 &&
      find_open(*state, id, span)) {
    args.json = kept_args(*state, index);
  }
  finish_span(*state, id, now, args);
}

SpanId begin_with_args(uint32_t name,
                       uint32_t generation,
                       std::string_view json) noexcept {
  const SpanId id = begin(name, generation);
  const auto index = static_cast<uint32_t>(id) & kNoSlot;
  if (id == kNotRecorded || json.empty()) {
    return id;
  }
  const KeepErrno keep;
  ThreadState& state = *t_state;
  enter(state);
  if (index >= kOpenSlots || json.size() > kMaxArgsBytes ||
      !keep_args(state, index, json)) {
    g_process.arena->header->bad_args.fetch_add(1, std::memory_order_relaxed);
  }
  leave(state);
  return id;
}

bool end_with_args(SpanId id, const EndArgs& args) noexcept {
  const uint32_t generation = recording();
  ThreadState* state = t_state;
  if (generation == 0 || id < 0 || state == nullptr) {
    return false;
  }
  const uint64_t now = args.end_ticks != 0 ? args.end_ticks : stamp(*state);
  const KeepErrno keep;
  if (state == &g_under_construction || state->generation != generation ||
      !current(*state) || state->busy.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  return finish_span(*state, id, now, args);
}

bool write_deferred(uint32_t generation,
                    uint64_t key,
                    std::string_view json) noexcept {
  ThreadState* state = ready_state(generation);
  if (state == nullptr) {
    return false;
  }
  enter(*state);
  const Record head{kDeferred, 0, 1, 0, 0, 0, key};
  const bool written = write_record(*state, head, {key, json});
  leave(*state);
  return written;
}

SpanId refuse_name() noexcept {
  if (recording() != 0) {
    g_process.arena->header->lost_bad_name.fetch_add(1,
                                                     std::memory_order_relaxed);
  }
  return kNotRecorded;
}

bool watch_thread_exits() noexcept {
  if (g_exit_key_made.load(std::memory_order_acquire)) {
    return true;
  }
  if (pthread_key_create(&g_exit_key, on_thread_exit) != 0) {
    return false;
  }
  g_exit_key_made.store(true, std::memory_order_release);
  return true;
}

}  // namespace shp::recorder
