// The callbacks that stand in a copy's tables, for each chain a set of them:
// what is recorded, and the call handed on to the function behind ours. For
// nvtx.cpp.
#pragma once

#include <type_traits>

#include "preload/inject/nvtx_abi.h"
#include "preload/inject/nvtx_events.h"
#include "preload/inject/ranges.h"
#include "preload/marks.h"
#include "preload/names.h"

namespace shp::inject::nvtx {

// 0: nobody behind us. Another injection usually gives all copies the same
// functions, which is one chain.
constexpr int kChains = 4;

struct Next {
  AnyFunction core[kCoreSize];
  AnyFunction core2[kCore2Size];
  bool used;
};
extern constinit Next g_next[kChains];

template <int kChain>
constexpr Handles kHandles = kChain == 0 ? Handles::kOwn : Handles::kAnothers;

// The function behind ours, or nullptr. `At` is a Core or a Core2.
template <int kChain, auto kAt, typename Function>
Function* next() noexcept {
  if constexpr (kChain == 0) {
    return nullptr;
  } else if constexpr (std::is_same_v<decltype(kAt), Core>) {
    return reinterpret_cast<Function*>(g_next[kChain].core[kAt]);
  } else {
    return reinterpret_cast<Function*>(g_next[kChain].core2[kAt]);
  }
}

// ---- what is recorded -------------------------------------------------------

// The session's generation, 0 when nothing records: then in one load.
inline uint32_t begun() noexcept {
  return recorder::g_process.live.load(std::memory_order_relaxed) == 0
             ? 0
             : recorder::recording_or_start();
}

inline void mark(uint32_t generation,
                 uint32_t name,
                 std::string_view json) noexcept {
  if (name != kNoName) {
    recorder::write_instant(name, generation, json);
  } else {
    recorder::refuse_mark();
  }
}

inline int push(uint32_t generation,
                const void* domain,
                uint32_t name,
                std::string_view json) noexcept {
  // An empty message is a range too, and its pop will come.
  return push_range(generation,
                    domain,
                    SHP_LIKELY(name != kNoName) ? name : intern("(unnamed)"),
                    json);
}

inline int pop_begun(const void* domain) noexcept {
  return recorder::g_process.live.load(std::memory_order_relaxed) == 0
             ? kNoTracking
             : pop_range(domain);
}

inline uint64_t start(uint32_t generation,
                      uint64_t key,
                      uint32_t name,
                      std::string_view json) noexcept {
  if (name != kNoName) {
    start_range(generation, key, name, json);
  } else {
    recorder::refuse_name();
  }
  return key;
}

// ---- callbacks --------------------------------------------------------------

template <int kChain, Core kAt, typename Char>
void mark_text(const Char* text) {
  if (const uint32_t generation = begun(); generation != 0) {
    mark(generation, intern(text), {});
  }
  if (auto* more = next<kChain, kAt, void(const Char*)>(); more != nullptr) {
    more(text);
  }
}

template <int kChain>
void mark_ex(const EventAttributes* event) {
  if (const uint32_t generation = event != nullptr ? begun() : 0;
      generation != 0) {
    mark(generation,
         name_of_event(*event, kHandles<kChain>),
         Args(kNoName, event).json());
  }
  if (auto* more = next<kChain, kMarkEx, void(const EventAttributes*)>();
      more != nullptr) {
    more(event);
  }
}

template <int kChain, Core kAt, typename Char>
int push_text(const Char* text) {
  const uint32_t generation = begun();
  const int depth = generation != 0
                        ? push(generation, nullptr, intern(text), {})
                        : kNoTracking;
  auto* more = next<kChain, kAt, int(const Char*)>();
  return more != nullptr ? more(text) : depth;
}

template <int kChain>
int push_ex(const EventAttributes* event) {
  int depth = kNoTracking;
  if (const uint32_t generation = event != nullptr ? begun() : 0;
      generation != 0) {
    depth = push(generation,
                 nullptr,
                 name_of_event(*event, kHandles<kChain>),
                 Args(kNoName, event).json());
  }
  auto* more = next<kChain, kRangePushEx, int(const EventAttributes*)>();
  return more != nullptr ? more(event) : depth;
}

template <int kChain>
int pop() {
  const int depth = pop_begun(nullptr);
  auto* more = next<kChain, kRangePop, int()>();
  return more != nullptr ? more() : depth;
}

template <int kChain, Core kAt, typename Char>
uint64_t start_text(const Char* text) {
  auto* more = next<kChain, kAt, uint64_t(const Char*)>();
  const uint64_t key = more != nullptr ? more(text) : new_range_key();
  const uint32_t generation = begun();
  return generation != 0 ? start(generation, key, intern(text), {}) : key;
}

template <int kChain>
uint64_t start_ex(const EventAttributes* event) {
  auto* more = next<kChain, kRangeStartEx, uint64_t(const EventAttributes*)>();
  const uint64_t key = more != nullptr ? more(event) : new_range_key();
  const uint32_t generation = event != nullptr ? begun() : 0;
  return generation == 0 ? key
                         : start(generation,
                                 key,
                                 name_of_event(*event, kHandles<kChain>),
                                 Args(kNoName, event).json());
}

template <int kChain>
void end(uint64_t key) {
  end_range(key);
  if (auto* more = next<kChain, kRangeEnd, void(uint64_t)>(); more != nullptr) {
    more(key);
  }
}

template <int kChain, Core kAt, typename Char>
void category(uint32_t number, const Char* text) {
  name_category(kNoName, number, intern(text));
  if (auto* more = next<kChain, kAt, void(uint32_t, const Char*)>();
      more != nullptr) {
    more(number, text);
  }
}

template <int kChain>
void domain_mark_ex(Handle domain, const EventAttributes* event) {
  if (const uint32_t generation = event != nullptr ? begun() : 0;
      generation != 0) {
    mark(generation,
         name_of_event(*event, kHandles<kChain>),
         Args(name_of(domain, kHandles<kChain>), event).json());
  }
  if (auto* more =
          next<kChain, kDomainMarkEx, void(Handle, const EventAttributes*)>();
      more != nullptr) {
    more(domain, event);
  }
}

template <int kChain>
int domain_push_ex(Handle domain, const EventAttributes* event) {
  int depth = kNoTracking;
  if (const uint32_t generation = event != nullptr ? begun() : 0;
      generation != 0) {
    depth = push(generation,
                 domain,
                 name_of_event(*event, kHandles<kChain>),
                 Args(name_of(domain, kHandles<kChain>), event).json());
  }
  auto* more =
      next<kChain, kDomainRangePushEx, int(Handle, const EventAttributes*)>();
  return more != nullptr ? more(domain, event) : depth;
}

template <int kChain>
int domain_pop(Handle domain) {
  const int depth = pop_begun(domain);
  auto* more = next<kChain, kDomainRangePop, int(Handle)>();
  return more != nullptr ? more(domain) : depth;
}

template <int kChain>
uint64_t domain_start_ex(Handle domain, const EventAttributes* event) {
  auto* more = next<kChain,
                    kDomainRangeStartEx,
                    uint64_t(Handle, const EventAttributes*)>();
  const uint64_t key = more != nullptr ? more(domain, event) : new_range_key();
  const uint32_t generation = event != nullptr ? begun() : 0;
  return generation == 0
             ? key
             : start(generation,
                     key,
                     name_of_event(*event, kHandles<kChain>),
                     Args(name_of(domain, kHandles<kChain>), event).json());
}

template <int kChain>
void domain_end(Handle domain, uint64_t key) {
  end_range(key);
  if (auto* more = next<kChain, kDomainRangeEnd, void(Handle, uint64_t)>();
      more != nullptr) {
    more(domain, key);
  }
}

template <int kChain, Core2 kAt, typename Char>
void domain_category(Handle domain, uint32_t number, const Char* text) {
  name_category(name_of(domain, kHandles<kChain>), number, intern(text));
  if (auto* more = next<kChain, kAt, void(Handle, uint32_t, const Char*)>();
      more != nullptr) {
    more(domain, number, text);
  }
}

// The handle that the program gets for a name: ours, or the other's, which is
// then known here too.
template <int kChain>
Handle handle_for(uint32_t name, Handle others) noexcept {
  const Handle handle = others != nullptr ? others : handle_of_name(name);
  if (kChain != 0) {
    keep_handle(handle, name);
  }
  return handle;
}

template <int kChain, Core2 kAt, typename Char>
Handle register_string(Handle domain, const Char* text) {
  auto* more = next<kChain, kAt, Handle(Handle, const Char*)>();
  return handle_for<kChain>(intern(text),
                            more != nullptr ? more(domain, text) : nullptr);
}

template <int kChain, Core2 kAt, typename Char>
Handle create_domain(const Char* text) {
  auto* more = next<kChain, kAt, Handle(const Char*)>();
  return handle_for<kChain>(intern(text),
                            more != nullptr ? more(text) : nullptr);
}

}  // namespace shp::inject::nvtx
