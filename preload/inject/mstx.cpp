// The injection into Ascend's mstx: InitInjectionMstx, called once by each copy
// of mstx, and the callbacks that it puts into the copy's tables: marks,
// ranges, domains.
//
// mstx looks for the function in what MSTX_INJECTION_PATH names, or else in the
// whole process, where a preloaded library comes first. So this one must hand
// on to the one that it hides, also where nobody asked for mstx ranges.
//
// Declared by hand from mstx's public headers. 0 is success here.

#include <dlfcn.h>

#include "preload/args_json.h"
#include "preload/inject/chain.h"
#include "preload/inject/environment.h"
#include "preload/inject/ranges.h"
#include "preload/log.h"
#include "preload/marks.h"
#include "preload/names.h"

namespace shp::inject::mstx {
namespace {

using Handle = void*;
using Stream = void*;

constexpr int kSuccess = 0;
constexpr int kFail = 1;

enum Module : int { kCore = 1, kCoreDomain = 2 };
// Places in the tables; the domain module's behind the core's.
enum Core : unsigned { kMarkA = 1, kRangeStartA = 2, kRangeEnd = 3 };
enum CoreDomain : unsigned {
  kDomainCreateA = 1,
  kDomainMarkA = 3,
  kDomainRangeStartA = 4,
  kDomainRangeEnd = 5,
};
constexpr unsigned kPlaces = 8;

using GetTable = int (*)(int module, AnyFunction*** table, unsigned* size);
using Initialize = int (*)(GetTable);

struct Tables {
  AnyFunction** core;
  AnyFunction** domain;
  unsigned core_size;
  unsigned domain_size;

  AnyFunction* core_at(unsigned at) const noexcept {
    return core != nullptr && at < core_size ? core[at] : nullptr;
  }
  AnyFunction* domain_at(unsigned at) const noexcept {
    return domain != nullptr && at < domain_size ? domain[at] : nullptr;
  }
};

constinit Chains<2 * kPlaces> g_chains{};

template <int kChain, auto kAt, typename Function>
Function* next() noexcept {
  constexpr bool kOfDomain = std::is_same_v<decltype(kAt), CoreDomain>;
  if constexpr (kChain == 0) {
    return nullptr;
  } else {
    return reinterpret_cast<Function*>(
        g_chains.sets[kChain].functions[kAt + (kOfDomain ? kPlaces : 0)]);
  }
}

uint32_t begun() noexcept {
  return recorder::g_process.live.load(std::memory_order_relaxed) == 0
             ? 0
             : recorder::recording_or_start();
}

class DomainArgs {
 public:
  DomainArgs(Handle domain, bool chained) noexcept {
    const uint32_t name =
        chained ? name_of_handle(domain) : name_of_own_handle(domain);
    if (const auto text = recorder::name_text(name); !text.empty()) {
      shp_arg arg{"domain", SHP_STR, {}};
      arg.value.str = text.data();
      json_ = recorder::encode_args({&arg, 1}, text_);
    }
  }
  std::string_view json() const noexcept { return json_; }

 private:
  char text_[512];
  std::string_view json_;
};

void mark(const char* text, std::string_view json) noexcept {
  const uint32_t generation = begun();
  if (generation == 0) {
    return;
  }
  const uint32_t name = recorder::intern_c_name(text);
  if (name != kNoName) {
    recorder::write_instant(name, generation, json);
  } else {
    recorder::refuse_mark();
  }
}

uint64_t start(uint64_t key, const char* text, std::string_view json) noexcept {
  const uint32_t generation = begun();
  if (generation == 0) {
    return key;
  }
  const uint32_t name = recorder::intern_c_name(text);
  if (name != kNoName) {
    start_range(generation, key, name, json);
  } else {
    recorder::refuse_name();
  }
  return key;
}

// ---- callbacks --------------------------------------------------------------

template <int kChain>
void mark_a(const char* text, Stream stream) {
  mark(text, {});
  if (auto* more = next<kChain, kMarkA, void(const char*, Stream)>();
      more != nullptr) {
    more(text, stream);
  }
}

template <int kChain>
uint64_t range_start_a(const char* text, Stream stream) {
  auto* more = next<kChain, kRangeStartA, uint64_t(const char*, Stream)>();
  return start(
      more != nullptr ? more(text, stream) : new_range_key(), text, {});
}

template <int kChain>
void range_end(uint64_t key) {
  end_range(key);
  if (auto* more = next<kChain, kRangeEnd, void(uint64_t)>(); more != nullptr) {
    more(key);
  }
}

template <int kChain>
Handle domain_create_a(const char* text) {
  auto* more = next<kChain, kDomainCreateA, Handle(const char*)>();
  const uint32_t name = recorder::intern_c_name(text);
  Handle handle = more != nullptr ? more(text) : nullptr;
  handle = handle != nullptr ? handle : handle_of_name(name);
  if (kChain != 0) {
    keep_handle(handle, name);
  }
  return handle;
}

template <int kChain>
void domain_mark_a(Handle domain, const char* text, Stream stream) {
  mark(text, DomainArgs(domain, kChain != 0).json());
  if (auto* more =
          next<kChain, kDomainMarkA, void(Handle, const char*, Stream)>();
      more != nullptr) {
    more(domain, text, stream);
  }
}

template <int kChain>
uint64_t domain_range_start_a(Handle domain, const char* text, Stream stream) {
  auto* more =
      next<kChain, kDomainRangeStartA, uint64_t(Handle, const char*, Stream)>();
  return start(more != nullptr ? more(domain, text, stream) : new_range_key(),
               text,
               DomainArgs(domain, kChain != 0).json());
}

template <int kChain>
void domain_range_end(Handle domain, uint64_t key) {
  end_range(key);
  if (auto* more = next<kChain, kDomainRangeEnd, void(Handle, uint64_t)>();
      more != nullptr) {
    more(domain, key);
  }
}

// ---- into a copy's tables ---------------------------------------------------

template <typename Function>
void set(AnyFunction* place, Function* function) noexcept {
  if (place != nullptr) {
    *place = reinterpret_cast<AnyFunction>(function);
  }
}

template <int kChain>
void set_all(const Tables& to) noexcept {
  set(to.core_at(kMarkA), mark_a<kChain>);
  set(to.core_at(kRangeStartA), range_start_a<kChain>);
  set(to.core_at(kRangeEnd), range_end<kChain>);
  set(to.domain_at(kDomainCreateA), domain_create_a<kChain>);
  set(to.domain_at(kDomainMarkA), domain_mark_a<kChain>);
  set(to.domain_at(kDomainRangeStartA), domain_range_start_a<kChain>);
  set(to.domain_at(kDomainRangeEnd), domain_range_end<kChain>);
}
constexpr void (*kSetAll[kChains])(const Tables&) = {
    set_all<0>, set_all<1>, set_all<2>, set_all<3>};

void read(const Tables& from, AnyFunction (&to)[2 * kPlaces]) noexcept {
  for (unsigned i = 0; i < kPlaces; ++i) {
    const AnyFunction* core = from.core_at(i);
    const AnyFunction* domain = from.domain_at(i);
    to[i] = core != nullptr ? *core : nullptr;
    to[kPlaces + i] = domain != nullptr ? *domain : nullptr;
  }
}

// The one that the variable named, or that ours hides.
Initialize another() noexcept {
  void* found = next_injection("SHP_NEXT_MSTX", "InitInjectionMstx");
  if (found == nullptr) {
    found = dlsym(RTLD_NEXT, "InitInjectionMstx");
  }
  return reinterpret_cast<Initialize>(found);
}

int initialize(GetTable get) noexcept {
  const Initialize behind = another();
  const bool wanted =
      !recorder::g_process.disabled && get != nullptr && asked_for("mstx");
  if (!wanted) {
    return behind != nullptr ? behind(get) : kFail;
  }
  Tables tables{};
  if (get(kCore, &tables.core, &tables.core_size) != kSuccess) {
    tables.core = nullptr;
  }
  if (get(kCoreDomain, &tables.domain, &tables.domain_size) != kSuccess) {
    tables.domain = nullptr;
  }
  AnyFunction before[2 * kPlaces];
  AnyFunction after[2 * kPlaces] = {};
  read(tables, before);
  if (behind != nullptr && behind(get) == kSuccess) {
    read(tables, after);
    for (unsigned i = 0; i < 2 * kPlaces; ++i) {
      after[i] = after[i] != before[i] ? after[i] : nullptr;
    }
  } else if (behind != nullptr) {
    recorder::log_line("SHP_NEXT_MSTX", "the injection refused to begin");
  }
  const int chain = g_chains.chain_of(after);
  if (chain < 0) {
    recorder::log_line("SHP_NEXT_MSTX",
                       "too many kinds of injections: this copy of mstx is "
                       "left to the other");
    return kSuccess;
  }
  kSetAll[chain](tables);
  return kSuccess;
}

}  // namespace
}  // namespace shp::inject::mstx

extern "C" [[gnu::visibility("default")]] int InitInjectionMstx(
    shp::inject::mstx::GetTable get) {
  return shp::inject::mstx::initialize(get);
}
