/* A copy of ITT's static part, as far as collectors see it, and a program that
 * uses it; or, with -DCOLLECTOR, another tool's collector, which appends what
 * it sees to the file OTHER_LOG names. Written against the documented binary
 * interface, without ITT's headers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned long long d1, d2, d3;
} id;
typedef struct {
  volatile int flags;
  const char* name;
} domain;
typedef struct {
  const char* text;
} handle;
typedef struct {
  const char* name;
  void** function;
  void* init_function;
  void* null_function;
  int group;
} api_info;
typedef struct {
  unsigned char magic[8];
  unsigned long version[3];
  volatile long initialized[3];
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** path;
  api_info* apis;
} global;

#ifdef COLLECTOR

static void (*next_begin)(const domain*, id, id, handle*);
static void (*next_end)(const domain*);

static void see(const char* what, const char* text) {
  FILE* log = fopen(getenv("OTHER_LOG"), "a");
  fprintf(log, "%s %s\n", what, text);
  fclose(log);
}
static void task_begin(const domain* d, id i, id p, handle* h) {
  see("begin", h->text);
  if (next_begin != NULL)
    next_begin(d, i, p, h);
}
static void task_end(const domain* d) {
  see("end", d->name);
  if (next_end != NULL)
    next_end(d);
}
__attribute__((visibility("default"))) void __itt_api_init(global* g,
                                                           int groups) {
  const char* next = getenv("OTHER_NEXT");
  if (next != NULL) {
    ((void (*)(global*, int))(uintptr_t)dlsym(dlopen(next, RTLD_LAZY),
                                              "__itt_api_init"))(g, groups);
  }
  for (api_info* api = g->apis; api->name != NULL; ++api) {
    void* held = *api->function == api->init_function ? NULL : *api->function;
    if (strcmp(api->name, "__itt_task_begin") == 0) {
      memcpy(&next_begin, &held, sizeof held);
      *api->function = (void*)(uintptr_t)task_begin;
    } else if (strcmp(api->name, "__itt_task_end") == 0) {
      memcpy(&next_end, &held, sizeof held);
      *api->function = (void*)(uintptr_t)task_end;
    }
  }
}

#else

static void nothing(void) {}
static void* p_begin;
static void* p_end;
static void* p_begin_overlapped;
static void* p_end_overlapped;
static void* p_marker;
static void* p_set_value;
#define INIT ((void*)(uintptr_t)nothing)
static api_info g_apis[] = {
    {"__itt_task_begin", &p_begin, INIT, NULL, 1},
    {"__itt_task_end", &p_end, INIT, NULL, 1},
    {"__itt_task_begin_overlapped", &p_begin_overlapped, INIT, NULL, 1},
    {"__itt_task_end_overlapped", &p_end_overlapped, INIT, NULL, 1},
    {"__itt_marker", &p_marker, INIT, NULL, 1},
    {"__itt_counter_set_value", &p_set_value, INIT, NULL, 1},
    {NULL, NULL, NULL, NULL, 0}};
static global g_global = {.apis = g_apis};

struct counter {
  const char* name;
  void* wide;
  const char* domain;
  void* wide_domain;
  int type;
};

int main(void) {
  for (api_info* api = g_apis; api->name != NULL; ++api) {
    *api->function = api->init_function;
  }
  const char* path = getenv("INTEL_LIBITTNOTIFY64");
  void* library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
  if (library != NULL) {
    ((void (*)(global*, int))(uintptr_t)dlsym(library, "__itt_api_init"))(
        &g_global, -1);
  }
  const domain d = {1, "my.domain"};
  handle outer = {"outer"}, inner = {"inner"}, wide = {"overlapped"},
         mark = {"a marker"};
  const id none = {0, 0, 0}, one = {1, 0, 0}, two = {2, 0, 0};
  struct counter counter = {"queue", NULL, "my.domain", NULL, 8};
  const double value = 2.5;
#define CALL(p, types, ...) \
  if (p != INIT)            \
  ((void(*) types)(uintptr_t)p)(__VA_ARGS__)
  CALL(p_begin, (const domain*, id, id, handle*), &d, none, none, &outer);
  CALL(p_begin, (const domain*, id, id, handle*), &d, none, none, &inner);
  CALL(p_begin_overlapped,
       (const domain*, id, id, handle*),
       &d,
       one,
       none,
       &wide);
  CALL(p_end, (const domain*), &d);
  CALL(p_begin_overlapped,
       (const domain*, id, id, handle*),
       &d,
       two,
       one,
       &wide);
  CALL(p_end, (const domain*), &d);
  CALL(p_end_overlapped, (const domain*, id), &d, one);
  CALL(p_end_overlapped, (const domain*, id), &d, two);
  CALL(p_marker, (const domain*, id, handle*, int), &d, none, &mark, 1);
  CALL(p_set_value, (const void*, const void*), &counter, &value);
  return 0;
}

#endif
