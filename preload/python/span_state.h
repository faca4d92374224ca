// SpanState: what the Python side remembers of the running session beyond what
// the recorder holds: attributes of open spans, deferred attributes of ended
// ones, and misuse to warn of once at stop(). One a process, GIL held.
//
// A forked child starts with none of it (after_fork in native_module.cpp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "preload/python/cpython_api.h"
#include "preload/python/held_attrs.h"

namespace shp::python {

// Attributes to be resolved after the freeze, for a span that was recorded with
// EndArgs::deferred == key.
struct Deferred {
  uint64_t key;
  PyObject* attrs;  // owned
};

// A count and the first reason for it.
struct Misuse {
  uint64_t count = 0;
  char first[200] = "";

  void note(std::string_view reason) noexcept;
};

class SpanState {
 public:
  constexpr SpanState() = default;

  HeldAttrs held;
  Misuse bad_args;
  Misuse bad_names;
  Misuse bad_marks;

  // Someone called start() and will call stop(). Else SHP_OUTPUT_DIR began the
  // session, which may go on for days: it keeps a bounded number of them.
  bool asked_for = false;

  uint64_t next_key() const noexcept { return last_key_ + 1; }
  bool has_room() const noexcept {
    return asked_for || deferred_.size() < kMostDeferred;
  }
  bool has_deferred() const noexcept { return !deferred_.empty(); }
  // False without memory. The key was next_key()'s.
  bool defer(Ref attrs) noexcept;
  std::vector<Deferred> take_deferred() noexcept;

  // A session begins, or none goes on here: drops everything.
  void clear() noexcept;
  void forget() noexcept;

 private:
  static constexpr size_t kMostDeferred = 1U << 20;

  std::vector<Deferred> deferred_;
  uint64_t last_key_ = 0;
};

// Never destroyed: daemon threads may end spans while the process exits.
union ImmortalSpanState {
  SpanState state;
  constexpr ImmortalSpanState() : state{} {}
  ~ImmortalSpanState() {}
};
extern constinit ImmortalSpanState g_span_state;

inline SpanState& spans() noexcept {
  return g_span_state.state;
}

}  // namespace shp::python
