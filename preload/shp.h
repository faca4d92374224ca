/* shp.h: host spans from C11 and C++17.
 *
 * Include it and build as usual: nothing to link. Where libshp.so is loaded
 * (LD_PRELOAD, `shp run`) the calls record; where it is not, each costs a load
 * and a branch, and shp_start fails.
 *
 *   shp_span step = shp_span_start("step");        a span: a named interval
 *   ...                                            on this thread
 *   shp_span_end(step);
 *
 * Threads. Any thread, signal handlers too (a call that comes inside another
 * one on the same thread is counted and not recorded). A span id is valid on
 * the thread that started it, in the session it was started in; ending -1, an
 * ended or a foreign id does nothing. Spans of a thread need not nest.
 *
 * Names are UTF-8 without NUL, at most 1 MiB, and are copied: the caller's
 * buffer may be reused. Attributes ("args") are the text of one JSON object, at
 * most 1 MiB, copied as well; bad ones cost the span its args, never the file.
 * errno is kept by every span call.
 *
 * shp_instant("oom") marks a point in time on this thread, and
 * shp_counter("queue", n) says a value that holds from now on in this process;
 * both are shown beside the spans.
 *
 * In C++, shp::Span does both calls by scope, and SHP_SPAN("name") is the same
 * with the name looked up once:
 *
 *   void run_batch(int size) {
 *     SHP_SPAN("run_batch", {{"size", size}});
 */
#ifndef SHP_H
#define SHP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open span; -1: not recorded. */
typedef int64_t shp_span;

/* A name that was looked up once, valid for the life of the process and in
 * forked children; 0: none. */
typedef uint32_t shp_name;

enum shp_arg_type { SHP_I64, SHP_F64, SHP_BOOL, SHP_STR };

/* One attribute. `key` and `value.str` are UTF-8, read during the call only. */
struct shp_arg {
  const char* key;
  enum shp_arg_type type;
  union {
    int64_t i64;
    double f64;
    int boolean;
    const char* str;
  } value;
};

/* What libshp.so exports as `shp_api`; grows at the end only, `bytes` says how
 * far it goes. */
struct shp_api {
  uint64_t bytes;
  const uint32_t* live; /* 0: no call would record anything; any thread */
  shp_name (*intern)(const char* name);
  shp_span (*span_start)(const char* name);
  shp_span (*span_start_name)(shp_name name);
  shp_span (*span_start_json)(const char* name, const char* args);
  shp_span (*span_start_args)(const char* name,
                              const struct shp_arg* args,
                              size_t count);
  void (*span_end)(shp_span span);
  void (*span_end_json)(shp_span span, const char* args);
  int (*start)(const char* dir, const char* session_id);
  int (*stop)(char* path_out, size_t path_size);
  int (*is_enabled)(void);
  int (*is_recording)(void);
  size_t (*last_error)(char* out, size_t size);
  /* Since 0.2. */
  void (*instant)(const char* name);
  void (*instant_json)(const char* name, const char* args);
  void (*instant_args)(const char* name,
                       const struct shp_arg* args,
                       size_t count);
  void (*counter)(const char* name, double value);
  void (*counter_name)(shp_name name, double value);
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#ifndef SHP_TYPES_ONLY

#include <dlfcn.h>
#include <errno.h>

#ifdef __cplusplus
#define SHP_NULL nullptr
extern "C" {
#else
#define SHP_NULL NULL
#endif

/* ---- what the calls are where libshp.so is not --------------------------- */

static inline shp_name shp_none_intern(const char* name) {
  (void)name;
  return 0;
}
static inline shp_span shp_none_span_start(const char* name) {
  (void)name;
  return -1;
}
static inline shp_span shp_none_span_start_name(shp_name name) {
  (void)name;
  return -1;
}
static inline shp_span shp_none_span_start_json(const char* name,
                                                const char* args) {
  (void)name;
  (void)args;
  return -1;
}
static inline shp_span shp_none_span_start_args(const char* name,
                                                const struct shp_arg* args,
                                                size_t count) {
  (void)name;
  (void)args;
  (void)count;
  return -1;
}
static inline void shp_none_span_end(shp_span span) {
  (void)span;
}
static inline void shp_none_span_end_json(shp_span span, const char* args) {
  (void)span;
  (void)args;
}
static inline int shp_none_start(const char* dir, const char* session_id) {
  (void)dir;
  (void)session_id;
  return -ENOSYS;
}
static inline int shp_none_stop(char* path_out, size_t path_size) {
  (void)path_out;
  (void)path_size;
  return -ENOSYS;
}
static inline int shp_none_is(void) {
  return 0;
}
static inline size_t shp_none_last_error(char* out, size_t size) {
  if (size > 0) {
    out[0] = '\0';
  }
  return 0;
}

static inline void shp_none_instant(const char* name) {
  (void)name;
}
static inline void shp_none_instant_json(const char* name, const char* args) {
  (void)name;
  (void)args;
}
static inline void shp_none_instant_args(const char* name,
                                         const struct shp_arg* args,
                                         size_t count) {
  (void)name;
  (void)args;
  (void)count;
}
static inline void shp_none_counter(const char* name, double value) {
  (void)name;
  (void)value;
}
static inline void shp_none_counter_name(shp_name name, double value) {
  (void)name;
  (void)value;
}

static const uint32_t shp_never_live = 0;
static const struct shp_api shp_none_api = {sizeof(struct shp_api),
                                            &shp_never_live,
                                            shp_none_intern,
                                            shp_none_span_start,
                                            shp_none_span_start_name,
                                            shp_none_span_start_json,
                                            shp_none_span_start_args,
                                            shp_none_span_end,
                                            shp_none_span_end_json,
                                            shp_none_start,
                                            shp_none_stop,
                                            shp_none_is,
                                            shp_none_is,
                                            shp_none_last_error,
                                            shp_none_instant,
                                            shp_none_instant_json,
                                            shp_none_instant_args,
                                            shp_none_counter,
                                            shp_none_counter_name};

/* Until the library was looked for, every call goes the long way. */
static const uint32_t shp_not_looked = 1;
static const uint32_t* shp_live_word = &shp_not_looked;
static const struct shp_api* shp_found_api = SHP_NULL;

/* dlsym, once a translation unit: it works in every way of linking, which weak
 * symbols do not. */
static inline const struct shp_api* shp_find_api(void) {
  const struct shp_api* api =
      (const struct shp_api*)dlsym(RTLD_DEFAULT, "shp_api");
  if (api == SHP_NULL || api->bytes < offsetof(struct shp_api, instant)) {
    api = &shp_none_api;
  }
  __atomic_store_n(&shp_found_api, api, __ATOMIC_RELEASE);
  __atomic_store_n(&shp_live_word, api->live, __ATOMIC_RELEASE);
  return api;
}

static inline const struct shp_api* shp_get_api(void) {
  const struct shp_api* api = __atomic_load_n(&shp_found_api, __ATOMIC_ACQUIRE);
  return __builtin_expect(api != SHP_NULL, 1) ? api : shp_find_api();
}

/* 0: a span call would do nothing, so it is not made. */
static inline int shp_may_record(void) {
  const uint32_t* live = __atomic_load_n(&shp_live_word, __ATOMIC_ACQUIRE);
  return __atomic_load_n(live, __ATOMIC_RELAXED) != 0;
}

/* ---- the calls ------------------------------------------------------------
 */

/* Looks a name up for shp_span_start_name. 0 when it is empty or no library. */
static inline shp_name shp_intern(const char* name) {
  return shp_get_api()->intern(name);
}

static inline shp_span shp_span_start(const char* name) {
  return shp_may_record() ? shp_get_api()->span_start(name) : -1;
}
static inline shp_span shp_span_start_name(shp_name name) {
  return shp_may_record() ? shp_get_api()->span_start_name(name) : -1;
}
/* `args`: the text of one JSON object, or NULL. */
static inline shp_span shp_span_start_json(const char* name, const char* args) {
  return shp_may_record() ? shp_get_api()->span_start_json(name, args) : -1;
}
static inline shp_span shp_span_start_args(const char* name,
                                           const struct shp_arg* args,
                                           size_t count) {
  return shp_may_record() ? shp_get_api()->span_start_args(name, args, count)
                          : -1;
}
static inline void shp_span_end(shp_span span) {
  if (span != -1) {
    shp_get_api()->span_end(span);
  }
}
/* Ends with args that are known only now; they replace those of the start. */
static inline void shp_span_end_json(shp_span span, const char* args) {
  if (span != -1) {
    shp_get_api()->span_end_json(span, args);
  }
}

/* An older libshp.so has spans and no marks. */
static inline const struct shp_api* shp_get_marks(void) {
  const struct shp_api* api = shp_get_api();
  return api->bytes >= sizeof(struct shp_api) ? api : &shp_none_api;
}

/* A mark: now, on this thread. Args as those of spans. */
static inline void shp_instant(const char* name) {
  if (shp_may_record()) {
    shp_get_marks()->instant(name);
  }
}
static inline void shp_instant_json(const char* name, const char* args) {
  if (shp_may_record()) {
    shp_get_marks()->instant_json(name, args);
  }
}
static inline void shp_instant_args(const char* name,
                                    const struct shp_arg* args,
                                    size_t count) {
  if (shp_may_record()) {
    shp_get_marks()->instant_args(name, args, count);
  }
}
/* A value that holds from now on: one row of the process a name. A value that
 * is not finite is not recorded, and counted. */
static inline void shp_counter(const char* name, double value) {
  if (shp_may_record()) {
    shp_get_marks()->counter(name, value);
  }
}
static inline void shp_counter_name(shp_name name, double value) {
  if (shp_may_record()) {
    shp_get_marks()->counter_name(name, value);
  }
}

/* Begins this process's session: its host file will be published in `dir`,
 * which is made with its parents when missing. `session_id` may be NULL. 0, or
 * a negative errno (-EALREADY: a session runs; -ENOSYS: no libshp.so). May
 * block for as long as it takes to reach the daemon. */
static inline int shp_start(const char* dir, const char* session_id) {
  return shp_get_api()->start(dir, session_id);
}
/* Ends it; returns when the file is published, its path (NUL-ended, cut to
 * fit) in `path_out` unless that is NULL. 0 or a negative errno (-ENOTCONN: no
 * session). */
static inline int shp_stop(char* path_out, size_t path_size) {
  return shp_get_api()->stop(path_out, path_size);
}
/* 1: libshp.so is loaded and not switched off. */
static inline int shp_is_enabled(void) {
  return shp_get_api()->is_enabled();
}
/* 1: a session runs in this process. */
static inline int shp_is_recording(void) {
  return shp_get_api()->is_recording();
}
/* One line about the calling thread's last failed shp_start or shp_stop; its
 * length, which may exceed `size`. */
static inline size_t shp_last_error(char* out, size_t size) {
  return shp_get_api()->last_error(out, size);
}

#ifdef __cplusplus
} /* extern "C" */

#include <initializer_list>
#include <string>
#include <type_traits>

namespace shp {

// One attribute of a span. Strings are read while the span is being started.
struct Arg : shp_arg {
  Arg(const char* name, bool v) {
    key = name;
    type = SHP_BOOL;
    value.boolean = v ? 1 : 0;
  }
  template <typename T,
            std::enable_if_t<std::is_integral<T>::value &&
                                 !std::is_same<T, bool>::value,
                             int> = 0>
  Arg(const char* name, T v) {
    key = name;
    type = SHP_I64;
    value.i64 = static_cast<int64_t>(v);
  }
  Arg(const char* name, double v) {
    key = name;
    type = SHP_F64;
    value.f64 = v;
  }
  Arg(const char* name, const char* v) {
    key = name;
    type = SHP_STR;
    value.str = v;
  }
  Arg(const char* name, const std::string& v) : Arg(name, v.c_str()) {}
};

// A name for the life of the process: looked up once, best as a static.
class Name {
 public:
  explicit Name(const char* text) : id_(shp_intern(text)) {}
  shp_name id() const noexcept { return id_; }

 private:
  shp_name id_;
};

// Records from construction to the end of the scope, or to end(). Stays on the
// thread that made it.
class Span {
 public:
  explicit Span(const char* name) noexcept : id_(shp_span_start(name)) {}
  explicit Span(const std::string& name) noexcept : Span(name.c_str()) {}
  explicit Span(const Name& name) noexcept
      : id_(shp_span_start_name(name.id())) {}
  Span(const char* name, std::initializer_list<Arg> args) noexcept
      : id_(shp_span_start_args(name, args.begin(), args.size())) {}
  Span(const char* name, const char* json) noexcept
      : id_(shp_span_start_json(name, json)) {}
  ~Span() { end(); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  void end() noexcept {
    shp_span_end(id_);
    id_ = -1;
  }
  // Ends with the text of a JSON object in place of the args of the start.
  void end(const char* json) noexcept {
    shp_span_end_json(id_, json);
    id_ = -1;
  }
  bool recorded() const noexcept { return id_ != -1; }

 private:
  shp_span id_;
};

// A mark: now, on this thread.
inline void instant(const char* name) noexcept {
  shp_instant(name);
}
inline void instant(const std::string& name) noexcept {
  shp_instant(name.c_str());
}
inline void instant(const char* name,
                    std::initializer_list<Arg> args) noexcept {
  shp_instant_args(name, args.begin(), args.size());
}
inline void instant(const char* name, const char* json) noexcept {
  shp_instant_json(name, json);
}

// A value that holds from now on.
inline void counter(const char* name, double value) noexcept {
  shp_counter(name, value);
}
inline void counter(const std::string& name, double value) noexcept {
  shp_counter(name.c_str(), value);
}
inline void counter(const Name& name, double value) noexcept {
  shp_counter_name(name.id(), value);
}

namespace internal {
inline const char* name_of(const char* text, std::initializer_list<Arg> = {}) {
  return text;
}
inline Span make_span(const Name& name, const char*) {
  return Span(name);
}
inline Span make_span(const Name&,
                      const char* text,
                      std::initializer_list<Arg> args) {
  return Span(text, args);
}
}  // namespace internal

}  // namespace shp

#define SHP_JOIN_(a, b) a##b
#define SHP_JOIN(a, b) SHP_JOIN_(a, b)
// A span to the end of the scope: SHP_SPAN("step"), SHP_SPAN("step", {{"n",
// 3}}).
#define SHP_SPAN(...)                                              \
  static const ::shp::Name SHP_JOIN(                               \
      shp_name_, __LINE__){::shp::internal::name_of(__VA_ARGS__)}; \
  const ::shp::Span SHP_JOIN(shp_span_, __LINE__) =                \
      ::shp::internal::make_span(SHP_JOIN(shp_name_, __LINE__), __VA_ARGS__)

#endif /* __cplusplus */
#endif /* SHP_TYPES_ONLY */
#endif /* SHP_H */
