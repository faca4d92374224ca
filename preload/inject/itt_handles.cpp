#include "preload/inject/itt_handles.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace shp::inject::itt {
namespace {

constinit std::atomic<Domain*> g_domains{};
constinit std::atomic<StringHandle*> g_strings{};
constinit std::atomic<Counter*> g_counters{};

bool same(const char* a, const char* b) noexcept {
  return a == b || (a != nullptr && b != nullptr && std::strcmp(a, b) == 0);
}

// The first of the list that `fits`, or a new one that `fill` made. Two threads
// may make the same one at once: then there are two, which says no less.
template <typename Item, typename Fits, typename Fill>
Item* find_or_make(std::atomic<Item*>& list, Fits fits, Fill fill) {
  Item* head = list.load(std::memory_order_acquire);
  for (Item* item = head; item != nullptr; item = item->next) {
    if (fits(*item)) {
      return item;
    }
  }
  void* at = std::calloc(1, sizeof(Item));
  if (at == nullptr) {
    return nullptr;
  }
  auto* item = new (at) Item{};
  fill(*item);
  do {
    item->next = head;
  } while (!list.compare_exchange_weak(head, item, std::memory_order_acq_rel));
  return item;
}

}  // namespace

Domain* create_domain(const char* name) {
  if (name == nullptr) {
    return nullptr;
  }
  return find_or_make(
      g_domains,
      [name](const Domain& domain) { return same(domain.name, name); },
      [name](Domain& domain) {
        domain.flags = 1;
        domain.name = strdup(name);
      });
}

StringHandle* create_string_handle(const char* text) {
  if (text == nullptr) {
    return nullptr;
  }
  return find_or_make(
      g_strings,
      [text](const StringHandle& handle) { return same(handle.text, text); },
      [text](StringHandle& handle) { handle.text = strdup(text); });
}

Counter* create_typed_counter(const char* name, const char* domain, int type) {
  if (name == nullptr) {
    return nullptr;
  }
  return find_or_make(
      g_counters,
      [=](const Counter& counter) {
        return counter.type == type && same(counter.name, name) &&
               same(counter.domain, domain);
      },
      [=](Counter& counter) {
        counter.name = strdup(name);
        counter.domain = domain != nullptr ? strdup(domain) : nullptr;
        counter.type = type;
      });
}

Counter* create_counter(const char* name, const char* domain) {
  return create_typed_counter(name, domain, kU64);
}

}  // namespace shp::inject::itt
