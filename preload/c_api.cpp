// The exported functions behind shp.h, and the table that it finds them by.
// Each forwards; what they do is in recorder.h, names.h and session.h.

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "preload/args_json.h"
#include "preload/marks.h"
#include "preload/names.h"
#include "preload/recorder.h"
#include "preload/session.h"

#define SHP_EXPORT extern "C" [[gnu::visibility("default")]]

using shp::recorder::SpanId;

namespace {

namespace recorder = shp::recorder;

constexpr size_t kArgsBytes = 4096;

// Bounded text that is read from a caller's pointer.
std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

std::string& last_error_text() {
  // Allocated, and its slot in the library's TLS block set up, only in threads
  // whose start or stop failed. Dynamic TLS: static TLS stays one pointer.
  static pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(
        &made, [](void* text) { delete static_cast<std::string*>(text); });
    return made;
  }();
  auto* text = static_cast<std::string*>(pthread_getspecific(key));
  if (text == nullptr) {
    text = new std::string();
    pthread_setspecific(key, text);
  }
  return *text;
}

void put_instant(const char* name, std::string_view json) {
  const uint32_t generation = recorder::recording_or_start();
  if (generation == 0) {
    return;
  }
  const uint32_t id = recorder::intern_c_name(name);
  if (id == shp::kNoName) {
    return recorder::refuse_mark();
  }
  recorder::write_instant(id, generation, json);
}

int failed(const shp::Error& error) {
  last_error_text() = error.message;
  return error.errno_value != 0 ? -error.errno_value : -EIO;
}

}  // namespace

SHP_EXPORT shp_name shp_intern(const char* name) {
  return recorder::intern_c_name(name);
}

SHP_EXPORT shp_span shp_span_start(const char* name) {
  const uint32_t generation = recorder::recording_or_start();
  if (SHP_UNLIKELY(generation == 0)) {
    return recorder::kNotRecorded;
  }
  const uint32_t id = recorder::intern_c_name(name);
  return SHP_LIKELY(id != shp::kNoName) ? recorder::begin(id, generation)
                                        : recorder::refuse_name();
}

SHP_EXPORT shp_span shp_span_start_name(shp_name name) {
  const uint32_t generation = recorder::recording_or_start();
  if (generation == 0) {
    return recorder::kNotRecorded;
  }
  return SHP_LIKELY(name != shp::kNoName) ? recorder::begin(name, generation)
                                          : recorder::refuse_name();
}

SHP_EXPORT shp_span shp_span_start_json(const char* name, const char* args) {
  const uint32_t generation = recorder::recording_or_start();
  if (generation == 0) {
    return recorder::kNotRecorded;
  }
  const uint32_t id = recorder::intern_c_name(name);
  return id != shp::kNoName
             ? recorder::begin_with_args(id, generation, text_or_empty(args))
             : recorder::refuse_name();
}

SHP_EXPORT shp_span shp_span_start_args(const char* name,
                                        const shp_arg* args,
                                        size_t count) {
  const uint32_t generation = recorder::recording_or_start();
  if (generation == 0) {
    return recorder::kNotRecorded;
  }
  char buffer[kArgsBytes];
  const std::string_view json = recorder::encode_args(
      {args, args == nullptr ? 0 : count}, {buffer, sizeof(buffer)});
  const uint32_t id = recorder::intern_c_name(name);
  if (id == shp::kNoName) {
    return recorder::refuse_name();
  }
  // What could not be encoded goes as text that no reader takes for args.
  return recorder::begin_with_args(
      id, generation, json.empty() ? std::string_view("!") : json);
}

SHP_EXPORT void shp_span_end(shp_span span) {
  recorder::end(span);
}

SHP_EXPORT void shp_span_end_json(shp_span span, const char* args) {
  if (args == nullptr) {
    return recorder::end(span);
  }
  recorder::end_with_args(span, {.json = args});
}

SHP_EXPORT void shp_instant(const char* name) {
  put_instant(name, {});
}

SHP_EXPORT void shp_instant_json(const char* name, const char* args) {
  put_instant(name, text_or_empty(args));
}

SHP_EXPORT void shp_instant_args(const char* name,
                                 const shp_arg* args,
                                 size_t count) {
  if (recorder::recording_or_start() == 0) {
    return;
  }
  char buffer[kArgsBytes];
  const std::string_view json = recorder::encode_args(
      {args, args == nullptr ? 0 : count}, {buffer, sizeof(buffer)});
  put_instant(name, json.empty() ? std::string_view("!") : json);
}

SHP_EXPORT void shp_counter_name(shp_name name, double value) {
  const uint32_t generation = recorder::recording_or_start();
  if (generation == 0) {
    return;
  }
  return name != shp::kNoName ? recorder::write_counter(name, generation, value)
                              : recorder::refuse_mark();
}

SHP_EXPORT void shp_counter(const char* name, double value) {
  if (recorder::recording_or_start() != 0) {
    shp_counter_name(recorder::intern_c_name(name), value);
  }
}

SHP_EXPORT int shp_start(const char* dir, const char* session_id) {
  try {
    const auto started =
        recorder::start_session({std::string(text_or_empty(dir)),
                                 std::string(text_or_empty(session_id))});
    return started ? 0 : failed(started.error());
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

SHP_EXPORT int shp_stop(char* path_out, size_t path_size) {
  try {
    const auto stopped = recorder::stop_session();
    if (!stopped) {
      return failed(stopped.error());
    }
    if (path_out != nullptr && path_size > 0) {
      const size_t length = std::min(stopped->path.size(), path_size - 1);
      std::memcpy(path_out, stopped->path.data(), length);
      path_out[length] = '\0';
    }
    return 0;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

SHP_EXPORT int shp_is_enabled(void) {
  return recorder::g_process.disabled ? 0 : 1;
}

SHP_EXPORT int shp_is_recording(void) {
  return recorder::recording() != 0 ? 1 : 0;
}

SHP_EXPORT size_t shp_last_error(char* out, size_t size) {
  const std::string& text = last_error_text();
  if (size > 0) {
    const size_t length = std::min(text.size(), size - 1);
    std::memcpy(out, text.data(), length);
    out[length] = '\0';
  }
  return text.size();
}

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

SHP_EXPORT const shp_api shp_api = {
    sizeof(shp_api),
    reinterpret_cast<const uint32_t*>(&recorder::g_process.live),
    shp_intern,
    shp_span_start,
    shp_span_start_name,
    shp_span_start_json,
    shp_span_start_args,
    shp_span_end,
    shp_span_end_json,
    shp_start,
    shp_stop,
    shp_is_enabled,
    shp_is_recording,
    shp_last_error,
    shp_instant,
    shp_instant_json,
    shp_instant_args,
    shp_counter,
    shp_counter_name};
