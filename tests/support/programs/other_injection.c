/* Another tool's injection: appends what it sees to the file OTHER_LOG names.
 * As a tool that chains itself, it begins what OTHER_NEXT names first and hands
 * every call on.
 *   OTHER_FAULT=refuse   answers that it does not begin
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*any_function)(void);
typedef const void* (*get_function)(uint32_t);

static void see(const char* what, const char* text) {
  FILE* log = fopen(getenv("OTHER_LOG"), "a");
  if (log != NULL) {
    fprintf(log, "%s %s\n", what, text);
    fclose(log);
  }
}

static any_function g_next[2][16];

static int push(const char* name) {
  see("push", name);
  return g_next[0][9] != NULL ? ((int (*)(const char*))g_next[0][9])(name) : 0;
}
static int pop(void) {
  see("pop", "");
  return g_next[0][11] != NULL ? ((int (*)(void))g_next[0][11])() : 0;
}
static uint64_t start(const char* name) {
  see("start", name);
  return g_next[0][5] != NULL ? ((uint64_t(*)(const char*))g_next[0][5])(name)
                              : 4711;
}
static void end(uint64_t id) {
  see("end", id == 4711 ? "own id" : "id");
  if (g_next[0][7] != NULL)
    ((void (*)(uint64_t))g_next[0][7])(id);
}
static void* create(const char* name) {
  see("domain", name);
  return g_next[1][12] != NULL ? ((void* (*)(const char*))g_next[1][12])(name)
                               : strdup(name);
}
static void* register_string(void* domain, const char* text) {
  see("string", text);
  return g_next[1][10] != NULL
             ? ((void* (*)(void*, const char*))g_next[1][10])(domain, text)
             : strdup(text);
}
static int domain_push(void* domain, const void* event) {
  const char* string = *(const char* const*)((const char*)event + 40);
  see("domain push", g_next[1][4] != NULL ? "handed on" : string);
  return g_next[1][4] != NULL
             ? ((int (*)(void*, const void*))g_next[1][4])(domain, event)
             : 0;
}

static void put(any_function** table, int which, int at, any_function ours) {
  any_function* place = table[at];
  if (getenv("OTHER_NEXT") != NULL)
    g_next[which][at] = *place;
  *place = ours;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    get_function get) {
  const char* fault = getenv("OTHER_FAULT");
  if (fault != NULL && strcmp(fault, "refuse") == 0)
    return 0;
  const char* next = getenv("OTHER_NEXT");
  if (next != NULL) {
    void* library = dlopen(next, RTLD_LAZY);
    int (*begin)(get_function) = (int (*)(get_function))(uintptr_t)dlsym(
        library, "InitializeInjectionNvtx2");
    if (begin(get) != 1)
      return 0;
  }
  const struct {
    size_t size;
    int (*get_module)(int, any_function***, unsigned*);
  }* callbacks = get(1);
  any_function** table;
  unsigned size;
  callbacks->get_module(1, &table, &size);
  put(table, 0, 9, (any_function)push);
  put(table, 0, 11, (any_function)pop);
  put(table, 0, 5, (any_function)start);
  put(table, 0, 7, (any_function)end);
  callbacks->get_module(5, &table, &size);
  put(table, 1, 12, (any_function)create);
  put(table, 1, 10, (any_function)register_string);
  put(table, 1, 4, (any_function)domain_push);
  see("begin", "");
  return 1;
}
