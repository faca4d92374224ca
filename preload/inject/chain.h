// Chains: the functions of another tool that stand behind ours. Annotation
// libraries call what stands in a copy's table and tell it nothing of the copy,
// so each set of another tool's functions is served by callbacks of its own,
// which a template makes from the chain's number.
//
// Chain 0 has nobody behind it. Another tool usually gives all copies the same
// functions, which is one chain.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

namespace shp::inject {

using AnyFunction = void (*)();

inline constexpr int kChains = 4;

template <size_t kFunctions>
struct Chains {
  struct Set {
    AnyFunction functions[kFunctions];
    bool used;
  };
  Set sets[kChains];
  std::atomic<bool> locked;

  // The chain of these functions; 0 when they are all null, -1 when there are
  // too many kinds.
  int chain_of(const AnyFunction (&functions)[kFunctions]) noexcept {
    static constexpr AnyFunction kNone[kFunctions] = {};
    if (std::memcmp(functions, kNone, sizeof(functions)) == 0) {
      return 0;
    }
    while (locked.exchange(true, std::memory_order_acquire)) {
    }
    int found = -1;
    for (int i = 1; i < kChains && found < 0; ++i) {
      Set& set = sets[i];
      if (!set.used ||
          std::memcmp(set.functions, functions, sizeof(functions)) == 0) {
        std::memcpy(set.functions, functions, sizeof(functions));
        set.used = true;
        found = i;
      }
    }
    locked.store(false, std::memory_order_release);
    return found;
  }
};

}  // namespace shp::inject
