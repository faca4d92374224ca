// Spans off the usual way: a thread's first, one more than its slots hold, one
// inside another call, and what is open.

#include <sys/mman.h>

#include "preload/thread_state.h"

namespace shp::recorder {
namespace {

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

}  // namespace

bool find_open(const ThreadState& state, SpanId id, OpenSpan& out) noexcept {
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

void close_open(ThreadState& state, SpanId id) noexcept {
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

}  // namespace shp::recorder
