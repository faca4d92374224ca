// The collector of Intel's ITT: __itt_api_init, called once by each copy of
// ITT's static part, and what it puts into the copy's table of functions:
// tasks, overlapped tasks, markers, counters. Domains and string handles stay
// with the static part, which keeps their texts. Torch (torch.profiler.itt,
// emit_itt), oneDNN, TBB and OpenVINO each hold such a copy.
//
// Declared by hand from ittnotify.h and ittnotify_config.h, version 3.

#include <cmath>
#include <cstring>

#include "preload/args_json.h"
#include "preload/inject/chain.h"
#include "preload/inject/environment.h"
#include "preload/inject/itt_handles.h"
#include "preload/inject/ranges.h"
#include "preload/log.h"
#include "preload/marks.h"
#include "preload/names.h"

namespace shp::inject::itt {
namespace {

struct Id {
  unsigned long long d1, d2, d3;
};
struct ApiInfo {
  const char* name;
  void** function;
  void* init_function;  // what stands there before anybody was asked
  void* null_function;
  int group;
};
struct Global {
  unsigned char magic[8];
  unsigned long version[3];
  volatile long initialized[3];
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** path;
  ApiInfo* apis;  // ends with one that has no name
};

// What ours stand for, by ITT's names.
enum Hook : size_t {
  kTaskBegin,
  kTaskBeginFn,
  kTaskEnd,
  kTaskBeginOverlapped,
  kTaskEndOverlapped,
  kMarker,
  kCounterSetValue,
  kChained,  // those from here on have nobody behind them
  kDomainCreate = kChained,
  kStringHandleCreate,
  kCounterCreate,
  kCounterCreateTyped,
  kHooks,
};
constexpr const char* kNames[kHooks] = {"__itt_task_begin",
                                        "__itt_task_begin_fn",
                                        "__itt_task_end",
                                        "__itt_task_begin_overlapped",
                                        "__itt_task_end_overlapped",
                                        "__itt_marker",
                                        "__itt_counter_set_value",
                                        "__itt_domain_create",
                                        "__itt_string_handle_create",
                                        "__itt_counter_create",
                                        "__itt_counter_create_typed"};

constinit Chains<kChained> g_chains{};

template <int kChain, Hook kHook, typename Function>
Function* next() noexcept {
  if constexpr (kChain == 0) {
    return nullptr;
  } else {
    return reinterpret_cast<Function*>(g_chains.sets[kChain].functions[kHook]);
  }
}

uint32_t begun() noexcept {
  return recorder::g_process.live.load(std::memory_order_relaxed) == 0
             ? 0
             : recorder::recording_or_start();
}

uint32_t name_of(const StringHandle* handle) noexcept {
  const uint32_t name =
      handle != nullptr ? recorder::intern_c_name(handle->text) : kNoName;
  return name != kNoName ? name : recorder::intern_c_name("(unnamed)");
}

// {"domain":"PyTorch"}; empty where the domain has no name.
class DomainArgs {
 public:
  explicit DomainArgs(const Domain* domain) noexcept {
    if (domain != nullptr && domain->name != nullptr) {
      shp_arg arg{"domain", SHP_STR, {}};
      arg.value.str = domain->name;
      json_ = recorder::encode_args({&arg, 1}, text_);
    }
  }
  std::string_view json() const noexcept { return json_; }

 private:
  char text_[512];
  std::string_view json_;
};

// Ids are three numbers; two that share a key would have to be open at once.
uint64_t key_of(const Id& id) noexcept {
  uint64_t key = id.d1 * 0x9e37'79b9'7f4a'7c15U;
  key = (key ^ (key >> 29) ^ id.d2) * 0xbf58'476d'1ce4'e5b9U;
  key = (key ^ (key >> 32) ^ id.d3) * 0x94d0'49bb'1331'11ebU;
  return key | 1;
}

bool read_counter(int type, const void* at, double* value) noexcept {
  const auto as = [at](auto zero) {
    std::memcpy(&zero, at, sizeof(zero));
    return static_cast<double>(zero);
  };
  switch (type) {
    case kU64:
      *value = as(uint64_t{0});
      return true;
    case kS64:
      *value = as(int64_t{0});
      return true;
    case kU32:
      *value = as(uint32_t{0});
      return true;
    case kS32:
      *value = as(int32_t{0});
      return true;
    case kU16:
      *value = as(uint16_t{0});
      return true;
    case kS16:
      *value = as(int16_t{0});
      return true;
    case kFloat:
      *value = as(0.0F);
      return true;
    case kDouble:
      *value = as(0.0);
      return true;
    default:
      return false;
  }
}

// ---- callbacks --------------------------------------------------------------

template <int kChain>
void task_begin(const Domain* domain, Id id, Id parent, StringHandle* name) {
  if (const uint32_t generation = begun(); generation != 0) {
    push_range(generation, domain, name_of(name), DomainArgs(domain).json());
  }
  if (auto* more = next<kChain,
                        kTaskBegin,
                        void(const Domain*, Id, Id, StringHandle*)>();
      more != nullptr) {
    more(domain, id, parent, name);
  }
}

template <int kChain>
void task_begin_fn(const Domain* domain, Id id, Id parent, void* function) {
  if (const uint32_t generation = begun(); generation != 0) {
    push_range(generation, domain, name_of(nullptr), DomainArgs(domain).json());
  }
  if (auto* more =
          next<kChain, kTaskBeginFn, void(const Domain*, Id, Id, void*)>();
      more != nullptr) {
    more(domain, id, parent, function);
  }
}

template <int kChain>
void task_end(const Domain* domain) {
  pop_range(domain);
  if (auto* more = next<kChain, kTaskEnd, void(const Domain*)>();
      more != nullptr) {
    more(domain);
  }
}

template <int kChain>
void task_begin_overlapped(const Domain* domain,
                           Id id,
                           Id parent,
                           StringHandle* name) {
  if (const uint32_t generation = begun(); generation != 0) {
    start_range(
        generation, key_of(id), name_of(name), DomainArgs(domain).json());
  }
  if (auto* more = next<kChain,
                        kTaskBeginOverlapped,
                        void(const Domain*, Id, Id, StringHandle*)>();
      more != nullptr) {
    more(domain, id, parent, name);
  }
}

template <int kChain>
void task_end_overlapped(const Domain* domain, Id id) {
  end_range(key_of(id));
  if (auto* more = next<kChain, kTaskEndOverlapped, void(const Domain*, Id)>();
      more != nullptr) {
    more(domain, id);
  }
}

template <int kChain>
void marker(const Domain* domain, Id id, StringHandle* name, int scope) {
  if (const uint32_t generation = begun(); generation != 0) {
    recorder::write_instant(
        name_of(name), generation, DomainArgs(domain).json());
  }
  if (auto* more =
          next<kChain, kMarker, void(const Domain*, Id, StringHandle*, int)>();
      more != nullptr) {
    more(domain, id, name, scope);
  }
}

// Only without another tool: counters are structs that it may have made.
void counter_set_value(const Counter* counter, const void* at) {
  const uint32_t generation = begun();
  double value = 0;
  if (generation == 0 || counter == nullptr || at == nullptr ||
      !read_counter(counter->type, at, &value)) {
    return;
  }
  const uint32_t name = recorder::intern_c_name(counter->name);
  if (name != kNoName) {
    recorder::write_counter(name, generation, value);
  } else {
    recorder::refuse_mark();
  }
}

// ---- into a copy's table ----------------------------------------------------

template <int kChain>
void* ours(Hook hook) noexcept {
  void* const functions[kHooks] = {
      reinterpret_cast<void*>(task_begin<kChain>),
      reinterpret_cast<void*>(task_begin_fn<kChain>),
      reinterpret_cast<void*>(task_end<kChain>),
      reinterpret_cast<void*>(task_begin_overlapped<kChain>),
      reinterpret_cast<void*>(task_end_overlapped<kChain>),
      reinterpret_cast<void*>(marker<kChain>),
      kChain == 0 ? reinterpret_cast<void*>(counter_set_value) : nullptr,
      reinterpret_cast<void*>(create_domain),
      reinterpret_cast<void*>(create_string_handle),
      reinterpret_cast<void*>(create_counter),
      reinterpret_cast<void*>(create_typed_counter)};
  return functions[hook];
}
constexpr void* (*kOurs[kChains])(Hook) = {ours<0>, ours<1>, ours<2>, ours<3>};

ApiInfo* find(Global& global, Hook hook) noexcept {
  for (ApiInfo* api = global.apis; api->name != nullptr; ++api) {
    if (std::strcmp(api->name, kNames[hook]) == 0) {
      return api;
    }
  }
  return nullptr;
}

// What another collector has put there; nullptr: nothing.
AnyFunction others(const ApiInfo* api) noexcept {
  return api == nullptr || *api->function == api->init_function ||
                 *api->function == api->null_function
             ? nullptr
             : reinterpret_cast<AnyFunction>(*api->function);
}

using Init = void (*)(Global*, int groups);

void initialize(Global* global, int groups) noexcept {
  if (global == nullptr || recorder::g_process.disabled) {
    return;
  }
  const auto another =
      reinterpret_cast<Init>(next_injection("SHP_NEXT_ITT", "__itt_api_init"));
  if (another != nullptr) {
    another(global, groups);
  }
  AnyFunction behind[kChained] = {};
  for (size_t i = 0; i < kChained; ++i) {
    behind[i] = others(find(*global, static_cast<Hook>(i)));
  }
  const int chain = g_chains.chain_of(behind);
  if (chain < 0) {
    recorder::log_line("SHP_NEXT_ITT",
                       "too many kinds of collectors: this copy of ITT is "
                       "left to the other");
    return;
  }
  for (size_t i = 0; i < kHooks; ++i) {
    const auto hook = static_cast<Hook>(i);
    ApiInfo* api = find(*global, hook);
    void* function = kOurs[chain](hook);
    const bool others_alone = hook >= kChained && others(api) != nullptr;
    if (api != nullptr && function != nullptr && !others_alone) {
      *api->function = function;
    }
  }
}

}  // namespace
}  // namespace shp::inject::itt

// The names are ITT's.
extern "C" [[gnu::visibility("default")]] void __itt_api_init(
    shp::inject::itt::Global* global, int groups) {
  shp::inject::itt::initialize(global, groups);
}
