// What the rare paths of the span calls share: thread_state.cpp makes a
// thread's state and takes it back, rare_spans.cpp and span_args.cpp use it.
// Nobody else.
#pragma once

#include <errno.h>

#include <cstdint>
#include <string_view>

#include "preload/recorder.h"

namespace shp::recorder {

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
inline void add_own(std::atomic<T>& counter, T delta) {
  counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + delta),
                std::memory_order_relaxed);
}

// Stands in t_state while a thread's real state is being made, so that a
// signal handler inside that finds the thread busy. generation 0 never matches.
extern ThreadState g_under_construction;
inline constexpr uint32_t kNoExtra = 0xffff'ffff;  // end of the extra list

// The state belongs to this process's arena.
inline bool current(const ThreadState& state) {
  return state.arena_serial == g_process.serial &&
         g_wiped.gate.load(std::memory_order_relaxed) != nullptr;
}

// What is lost when there is no state to record it with.
enum class Loss { kSpan, kMark };

// The calling thread's state, ready for `generation`, or nullptr: counted.
ThreadState* ready_state(uint32_t generation, Loss loss = Loss::kSpan) noexcept;

// Writes `head` with its payload, span_args.cpp: args of any length up to
// kMaxArgsBytes, in parts before it where they are long. False: no room; then
// nothing of it is read. Between enter() and leave().
struct Payload {
  uint64_t key = 0;  // kHasDeferred's or kDeferred's
  std::string_view json;
};
bool write_record(ThreadState& state, Record head, Payload payload) noexcept;

// An open span of this thread: its name and start. False when `id` is none.
struct OpenSpan {
  uint32_t name = 0;
  uint64_t start_ticks = 0;
};
bool find_open(const ThreadState& state, SpanId id, OpenSpan& out) noexcept;
void close_open(ThreadState& state, SpanId id) noexcept;

// Ends a span that may have args, stamped `now`; span_args.cpp. Whether a
// record was written.
bool finish_span(ThreadState& state,
                 SpanId id,
                 uint64_t now,
                 const EndArgs& args) noexcept;
// Args that were given at the start of the span in slot `index`.
std::string_view kept_args(const ThreadState& state, uint32_t index) noexcept;
void unmap_kept_args(ThreadState& state) noexcept;

}  // namespace shp::recorder
