// Domains, string handles and counters of ITT, for copies of its static part
// that leave making them to the collector once one is there (before
// version 3.24). One of each name in the process, never freed: programs keep
// them in statics.
//
// Structs as in ittnotify.h; their fields behind the ones that are read here
// are the runtime's.
#pragma once

namespace shp::inject::itt {

struct Domain {
  volatile int flags;  // 0: switched off
  const char* name;
  void* wide_name;
  int extra1;
  void* extra2;
  Domain* next;
};
struct StringHandle {
  const char* text;
  void* wide_text;
  int extra1;
  void* extra2;
  StringHandle* next;
};
struct Counter {
  const char* name;
  void* wide_name;
  const char* domain;
  void* wide_domain;
  int type;
  long index;
  int extra1;
  void* extra2;
  Counter* next;
};

enum CounterType : int {
  kU64 = 1,
  kS64 = 2,
  kU32 = 3,
  kS32 = 4,
  kU16 = 5,
  kS16 = 6,
  kFloat = 7,
  kDouble = 8,
};

// nullptr without memory, or for a null name.
Domain* create_domain(const char* name);
StringHandle* create_string_handle(const char* text);
Counter* create_counter(const char* name, const char* domain);
Counter* create_typed_counter(const char* name, const char* domain, int type);

}  // namespace shp::inject::itt
