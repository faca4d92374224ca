// The injection into NVTX: InitializeInjectionNvtx2, called once by each copy
// of NVTX in the process, and the callbacks that it puts into the copy's
// tables.
//
// Where SHP_NEXT_NVTX names another injection (environment.h), that one is
// initialised first for the same copy; ours stands before it and hands every
// call on. Callbacks are told nothing about their copy, so each set of
// functions of the other is served by callbacks of its own (kChains).

#include <cstring>

#include "preload/inject/environment.h"
#include "preload/inject/nvtx_callbacks.h"
#include "preload/log.h"

namespace shp::inject::nvtx {

constinit Next g_next[kChains]{};

namespace {

constinit std::atomic<uint32_t> g_lock{};

// ---- into a copy's tables ---------------------------------------------------

struct Tables {
  AnyFunction** core;
  AnyFunction** core2;
  unsigned core_size;
  unsigned core2_size;
};

template <typename Function>
void set(AnyFunction** table, unsigned size, unsigned at, Function* function) {
  if (at < size && table[at] != nullptr) {
    *table[at] = reinterpret_cast<AnyFunction>(function);
  }
}

template <int kChain>
void set_core(const Tables& to) {
  const auto put = [&to](Core at, auto* function) {
    set(to.core, to.core_size, at, function);
  };
  put(kMarkEx, mark_ex<kChain>);
  put(kMarkA, mark_text<kChain, kMarkA, char>);
  put(kMarkW, mark_text<kChain, kMarkW, wchar_t>);
  put(kRangeStartEx, start_ex<kChain>);
  put(kRangeStartA, start_text<kChain, kRangeStartA, char>);
  put(kRangeStartW, start_text<kChain, kRangeStartW, wchar_t>);
  put(kRangeEnd, end<kChain>);
  put(kRangePushEx, push_ex<kChain>);
  put(kRangePushA, push_text<kChain, kRangePushA, char>);
  put(kRangePushW, push_text<kChain, kRangePushW, wchar_t>);
  put(kRangePop, pop<kChain>);
  put(kNameCategoryA, category<kChain, kNameCategoryA, char>);
  put(kNameCategoryW, category<kChain, kNameCategoryW, wchar_t>);
}

template <int kChain>
void set_core2(const Tables& to) {
  const auto put = [&to](Core2 at, auto* function) {
    set(to.core2, to.core2_size, at, function);
  };
  put(kDomainMarkEx, domain_mark_ex<kChain>);
  put(kDomainRangeStartEx, domain_start_ex<kChain>);
  put(kDomainRangeEnd, domain_end<kChain>);
  put(kDomainRangePushEx, domain_push_ex<kChain>);
  put(kDomainRangePop, domain_pop<kChain>);
  put(kDomainNameCategoryA,
      domain_category<kChain, kDomainNameCategoryA, char>);
  put(kDomainNameCategoryW,
      domain_category<kChain, kDomainNameCategoryW, wchar_t>);
  put(kDomainRegisterStringA,
      register_string<kChain, kDomainRegisterStringA, char>);
  put(kDomainRegisterStringW,
      register_string<kChain, kDomainRegisterStringW, wchar_t>);
  put(kDomainCreateA, create_domain<kChain, kDomainCreateA, char>);
  put(kDomainCreateW, create_domain<kChain, kDomainCreateW, wchar_t>);
}

template <int kChain>
void set_all(const Tables& to) {
  set_core<kChain>(to);
  set_core2<kChain>(to);
}

constexpr void (*kSetAll[kChains])(const Tables&) = {
    set_all<0>, set_all<1>, set_all<2>, set_all<3>};

// What the tables hold now; what was never set by anybody stands for itself.
Next contents(const Tables& from) noexcept {
  Next now{};
  for (unsigned i = 0; i < kCoreSize && i < from.core_size; ++i) {
    now.core[i] = from.core[i] != nullptr ? *from.core[i] : nullptr;
  }
  for (unsigned i = 0; i < kCore2Size && i < from.core2_size; ++i) {
    now.core2[i] = from.core2[i] != nullptr ? *from.core2[i] : nullptr;
  }
  return now;
}

// Only what another injection has put there.
bool keep_changes(const Next& before, Next& after) noexcept {
  bool any = false;
  for (unsigned i = 0; i < kCoreSize; ++i) {
    after.core[i] = after.core[i] != before.core[i] ? after.core[i] : nullptr;
    any = any || after.core[i] != nullptr;
  }
  for (unsigned i = 0; i < kCore2Size; ++i) {
    after.core2[i] =
        after.core2[i] != before.core2[i] ? after.core2[i] : nullptr;
    any = any || after.core2[i] != nullptr;
  }
  return any;
}

// The chain of these functions; -1: there are too many kinds.
int chain_of(const Next& functions) noexcept {
  uint32_t expected = 0;
  while (
      !g_lock.compare_exchange_weak(expected, 1, std::memory_order_acquire)) {
    expected = 0;
  }
  int found = -1;
  for (int i = 1; i < kChains && found < 0; ++i) {
    Next& chain = g_next[i];
    const bool same =
        std::memcmp(chain.core, functions.core, sizeof(chain.core)) == 0 &&
        std::memcmp(chain.core2, functions.core2, sizeof(chain.core2)) == 0;
    if (!chain.used || same) {
      chain = functions;
      chain.used = true;
      found = i;
    }
  }
  g_lock.store(0, std::memory_order_release);
  return found;
}

bool open_tables(GetExportTable get, Tables* to) noexcept {
  const auto* callbacks =
      get != nullptr ? static_cast<const CallbacksTable*>(get(kCallbacksId))
                     : nullptr;
  return callbacks != nullptr &&
         callbacks->struct_size >= sizeof(CallbacksTable) &&
         callbacks->get_module(kCore, &to->core, &to->core_size) != 0 &&
         callbacks->get_module(kCore2, &to->core2, &to->core2_size) != 0;
}

int initialize(GetExportTable get) noexcept {
  Tables tables{};
  if (recorder::g_process.disabled || !open_tables(get, &tables)) {
    return 0;
  }
  int chain = 0;
  const auto another = reinterpret_cast<Initialize>(
      next_injection("SHP_NEXT_NVTX", "InitializeInjectionNvtx2"));
  if (another != nullptr) {
    const Next before = contents(tables);
    const bool began = another(get) == 1;
    Next after = contents(tables);
    if (!began) {
      recorder::log_line("SHP_NEXT_NVTX", "the injection refused to begin");
    } else if (keep_changes(before, after)) {
      chain = chain_of(after);
    }
  }
  if (chain < 0) {
    recorder::log_line("SHP_NEXT_NVTX",
                       "too many kinds of injections: this copy of NVTX is "
                       "left to the other");
    return 1;
  }
  kSetAll[chain](tables);
  return 1;
}

}  // namespace
}  // namespace shp::inject::nvtx

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(
    shp::inject::nvtx::GetExportTable get) {
  return shp::inject::nvtx::initialize(get);
}
