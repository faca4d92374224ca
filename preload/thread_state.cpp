#include "preload/thread_state.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace shp::recorder {

// fork must empty this page and nothing else: it fills a page of .bss.
// constinit: a constructor that ran after on_load would undo what that set.
constinit ForkWiped g_wiped{};
constinit Process g_process{};
constinit ThreadState g_under_construction{};
__thread ThreadState* t_state __attribute__((tls_model("initial-exec")));

namespace {

constexpr uint32_t kClaimBits = 20;
constexpr uint32_t kClaimShift = 43;

pthread_key_t g_exit_key;
std::atomic<bool> g_exit_key_made;
std::atomic<uint32_t> g_claims;

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
  for (;;) {
    const uint32_t index =
        g_process.next_ring.fetch_add(1, std::memory_order_relaxed);
    if (index >= arena.geometry.max_rings ||
        !populate(&arena.rings[index], sizeof(RingHeader))) {
      g_process.next_ring.fetch_sub(1, std::memory_order_relaxed);
      return kNoBlock;
    }
    // A thread with a later ring may have raised rings_high already, and a
    // third one have found this one free in its search.
    uint32_t expected = kFree;
    if (arena.rings[index].state.compare_exchange_strong(
            expected, kClaimed, std::memory_order_acquire)) {
      note_ring_used(header, index);
      return index;
    }
  }
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
  ClientArena& arena = running_arena();
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

void unmap_extras(ThreadState& state) {
  if (state.extra != nullptr) {
    munmap(state.extra, sizeof(ExtraSlot) * kExtraSlots);
    state.extra = nullptr;
  }
  if (state.calls != nullptr) {
    munmap(state.calls, kCallStackBytes);
    state.calls = nullptr;
  }
  if (state.ranges != nullptr) {
    munmap(state.ranges, kRangeStackBytes);
    state.ranges = nullptr;
  }
  unmap_kept_args(state);
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

}  // namespace

ThreadState* ready_state(uint32_t generation, Loss loss) noexcept {
  ThreadState* state = t_state;
  ArenaHeader& header = *running_arena().header;
  auto& without_ring =
      loss == Loss::kMark ? header.lost_marks : header.lost_no_ring;
  if (state == &g_under_construction) {
    without_ring.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  if (state == nullptr || !current(*state)) {
    state = make_state(generation);
    if (state == nullptr) {
      without_ring.fetch_add(1, std::memory_order_relaxed);
    }
    return state;
  }
  RingHeader& ring = state->writer.ring();
  if (state->busy.load(std::memory_order_relaxed) != 0) {
    add_own(loss == Loss::kMark ? ring.lost_marks : ring.reentrant,
            uint64_t{1});
    return nullptr;
  }
  if (state->generation != generation) {
    enter(*state);
    const bool marked = mark_session(*state, generation);
    leave(*state);
    if (!marked) {
      add_own(loss == Loss::kMark ? ring.lost_marks : ring.overflow,
              uint64_t{1});
      return nullptr;
    }
  }
  return state;
}

SpanId refuse_name() noexcept {
  if (recording() != 0) {
    running_arena().header->lost_bad_name.fetch_add(1,
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
