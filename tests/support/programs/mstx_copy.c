/* A copy of Ascend's mstx, as far as injections see it, and a program that uses
 * it; or, with -DINJECTION, another tool's injection, which appends what it
 * sees to the file OTHER_LOG names. Written against the documented binary
 * interface, without mstx's headers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*any_function)(void);
typedef int (*get_table)(int, any_function***, unsigned*);
typedef int (*initialize)(get_table);

#ifdef INJECTION

static any_function g_next[8];

static void see(const char* what, const char* text) {
  FILE* log = fopen(getenv("OTHER_LOG"), "a");
  fprintf(log, "%s %s\n", what, text);
  fclose(log);
}
static void mark(const char* text, void* stream) {
  see("mark", text);
  if (g_next[1] != NULL)
    ((void (*)(const char*, void*))g_next[1])(text, stream);
}
static uint64_t start(const char* text, void* stream) {
  see("start", text);
  return g_next[2] != NULL
             ? ((uint64_t(*)(const char*, void*))g_next[2])(text, stream)
             : 99;
}
static void end(uint64_t id) {
  see("end", id == 99 ? "own id" : "id");
  if (g_next[3] != NULL)
    ((void (*)(uint64_t))g_next[3])(id);
}
__attribute__((visibility("default"))) int InitInjectionMstx(get_table get) {
  const char* next = getenv("OTHER_NEXT");
  if (next != NULL) {
    ((initialize)(uintptr_t)dlsym(dlopen(next, RTLD_LAZY),
                                  "InitInjectionMstx"))(get);
  }
  any_function** table;
  unsigned size;
  if (get(1, &table, &size) != 0)
    return 1;
  const any_function ours[] = {
      NULL, (any_function)mark, (any_function)start, (any_function)end};
  for (int i = 1; i <= 3; ++i) {
    g_next[i] = *table[i];
    *table[i] = ours[i];
  }
  return 0;
}

#else

enum { kSize = 6 };
static any_function g_core[kSize], g_domain[kSize];
static any_function *g_core_table[kSize], *g_domain_table[kSize];

static int get(int module, any_function*** table, unsigned* size) {
  *size = kSize;
  *table = module == 1 ? g_core_table : module == 2 ? g_domain_table : NULL;
  return *table == NULL;
}

int main(void) {
  for (int i = 0; i < kSize; ++i) {
    g_core_table[i] = &g_core[i];
    g_domain_table[i] = &g_domain[i];
  }
  const char* path = getenv("MSTX_INJECTION_PATH");
  /* Without the variable: whatever the process holds. */
  void* library = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
  initialize begin = (initialize)(uintptr_t)dlsym(library, "InitInjectionMstx");
  if (begin == NULL || begin(get) != 0)
    return 0;
  if (g_core[1] != NULL)
    ((void (*)(const char*, void*))g_core[1])("m", NULL);
  if (g_core[2] != NULL && g_core[3] != NULL) {
    ((void (*)(uint64_t))g_core[3])(
        ((uint64_t(*)(const char*, void*))g_core[2])("range", NULL));
  }
  if (g_domain[1] != NULL) {
    void* domain = ((void* (*)(const char*))g_domain[1])("hccl");
    ((void (*)(void*, const char*, void*))g_domain[3])(domain, "dm", NULL);
    ((void (*)(void*, uint64_t))g_domain[5])(
        domain,
        ((uint64_t(*)(void*, const char*, void*))g_domain[4])(
            domain, "in domain", NULL));
  }
  return 0;
}

#endif
