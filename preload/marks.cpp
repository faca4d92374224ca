#include "preload/marks.h"

#include <bit>

#include "preload/thread_state.h"

namespace shp::recorder {
namespace {

// Records without an open slot take an id too: it ties long args to them. No
// slot ever holds it, so no reader takes it for the end of an open span.
uint64_t take_id(ThreadState& state) {
  const uint64_t id = state.next_id;
  state.next_id += 1U << kSlotBits;
  return id;
}

void write_mark(uint32_t generation, Record head, std::string_view json) {
  const KeepErrno keep;
  ThreadState* state = ready_state(generation, Loss::kMark);
  if (state == nullptr) {
    return;
  }
  enter(*state);
  head.id = take_id(*state);
  head.start_ticks = stamp(*state);
  if (json.size() > kMaxArgsBytes) {
    json = {};
    head.flags = kBadArgs;
  }
  if (!write_record(*state, head, {0, json})) {
    add_own(state->writer.ring().lost_marks, uint64_t{1});
  }
  leave(*state);
}

}  // namespace

void write_instant(uint32_t name,
                   uint32_t generation,
                   std::string_view json) noexcept {
  write_mark(generation, Record{kInstant, 0, 1, name, 0, 0, 0}, json);
}

void write_instant_without_args(uint32_t name, uint32_t generation) noexcept {
  write_mark(generation, Record{kInstant, kBadArgs, 1, name, 0, 0, 0}, {});
}

void write_counter(uint32_t name, uint32_t generation, double value) noexcept {
  const auto bits = std::bit_cast<uint64_t>(value);
  write_mark(generation, Record{kCounter, 0, 1, name, 0, bits, 0}, {});
}

void refuse_mark() noexcept {
  if (recording() != 0) {
    running_arena().header->lost_marks.fetch_add(1, std::memory_order_relaxed);
  }
}

void write_span(uint32_t name,
                uint32_t generation,
                uint64_t start_ticks,
                std::string_view json) noexcept {
  const KeepErrno keep;
  ThreadState* state = ready_state(generation);
  if (state == nullptr) {
    return;
  }
  enter(*state);
  Record head{kSpan, 0, 1, name, start_ticks, stamp(*state), take_id(*state)};
  if (json.size() > kMaxArgsBytes) {
    json = {};
    head.flags = kBadArgs;
  }
  if (!write_record(*state, head, {0, json})) {
    add_own(state->writer.ring().overflow, uint64_t{1});
  }
  leave(*state);
}

uint64_t stamp_now(uint32_t generation) noexcept {
  const KeepErrno keep;
  const ThreadState* state = ready_state(generation);
  return state != nullptr ? stamp(*state) : 0;
}

}  // namespace shp::recorder
