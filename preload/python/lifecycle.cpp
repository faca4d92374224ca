#include "preload/python/lifecycle.h"

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "preload/python/arguments.h"
#include "preload/python/deferred.h"
#include "preload/python/span_state.h"
#include "preload/python/text.h"
#include "preload/recorder.h"
#include "preload/session.h"

namespace shp::python {
namespace {

constexpr const char* kAlreadyActive =
    "Host collection is already active in this process";
constexpr const char* kNotActive = "Host collection is not active";

PyObject* g_lock = nullptr;       // a threading.RLock
PyObject* g_lock_type = nullptr;  // makes one
bool g_closing = false;           // a stop() is between its freeze and its end

PyObject* raise(PyObject* type, const char* message) noexcept {
  py.PyErr_SetString(type, message);
  return nullptr;
}

Ref call_method(PyObject* object, const char* name) noexcept {
  const Ref method(py.PyObject_GetAttrString(object, name));
  return Ref(method ? py.PyObject_CallObject(method.get(), nullptr) : nullptr);
}

// The RLock, held. Taking it may raise (Ctrl-C while waiting).
class Lifecycle {
 public:
  Lifecycle() noexcept
      : lock_(Ref::borrow(g_lock)),
        held_(call_method(lock_.get(), "acquire")) {}
  ~Lifecycle() {
    if (held_) {
      const SavedException kept;
      if (!call_method(lock_.get(), "release")) {
        py.PyErr_Clear();
      }
    }
  }
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;
  explicit operator bool() const noexcept { return static_cast<bool>(held_); }

 private:
  Ref lock_;
  Ref held_;
};

// pathlib.Path(object)
Ref path_of(PyObject* object) noexcept {
  const Ref pathlib(py.PyImport_ImportModule("pathlib"));
  const Ref type(pathlib ? py.PyObject_GetAttrString(pathlib.get(), "Path")
                         : nullptr);
  return Ref(type ? call(type.get(), &object, 1, nullptr) : nullptr);
}

PyObject* path_of(const std::string& path) noexcept {
  const Ref text(py.PyUnicode_DecodeFSDefaultAndSize(
      path.data(), static_cast<Py_ssize_t>(path.size())));
  return text ? path_of(text.get()).release() : nullptr;
}

// The recorder's Error as the exception that the predecessor raised: OSError's
// constructor picks the subclass by the number.
PyObject* raise_error(const Error& failure, PyObject* filename) noexcept {
  if (failure.errno_value == EALREADY) {
    return raise(*py.PyExc_RuntimeError, kAlreadyActive);
  }
  if (failure.errno_value == ENOTCONN) {
    return raise(*py.PyExc_RuntimeError, kNotActive);
  }
  if (failure.errno_value == 0) {
    return raise(*py.PyExc_RuntimeError, failure.message.c_str());
  }
  const Ref number(py.PyLong_FromLongLong(failure.errno_value));
  const Ref message(py.PyUnicode_DecodeFSDefaultAndSize(
      failure.message.data(), static_cast<Py_ssize_t>(failure.message.size())));
  if (!number || !message) {
    return nullptr;
  }
  PyObject* arguments[] = {number.get(), message.get(), filename};
  const Ref exception(
      call(*py.PyExc_OSError, arguments, filename != nullptr ? 3 : 2, nullptr));
  if (exception) {
    py.PyErr_SetObject(reinterpret_cast<PyObject*>(type_of(exception.get())),
                       exception.get());
  }
  return nullptr;
}

bool is_active() noexcept {
  return !g_closing && recorder::active_session().active;
}

bool session_id_is_valid(PyObject* session_id) noexcept {
  return session_id == nullptr || session_id == py._Py_NoneStruct ||
         (is_a(session_id, kTypeIsStr) &&
          py.PyUnicode_GetLength(session_id) > 0);
}

// Path(output_dir).resolve(), made with its parents.
Ref make_directory(PyObject* output_dir) noexcept {
  const Ref path = path_of(output_dir);
  Ref root = path ? call_method(path.get(), "resolve") : Ref();
  if (!root) {
    return Ref();
  }
  const Ref mkdir(py.PyObject_GetAttrString(root.get(), "mkdir"));
  const Ref no_args(py.PyTuple_New(0));
  const Ref options(py.PyDict_New());
  if (!mkdir || !no_args || !options ||
      py.PyDict_SetItemString(options.get(), "parents", py._Py_TrueStruct) !=
          0 ||
      py.PyDict_SetItemString(options.get(), "exist_ok", py._Py_TrueStruct) !=
          0) {
    return Ref();
  }
  const Ref made(py.PyObject_Call(mkdir.get(), no_args.get(), options.get()));
  return made ? std::move(root) : Ref();
}

PyObject* start(PyObject* output_dir, PyObject* session_id) {
  const Lifecycle held;
  if (!held) {
    return nullptr;
  }
  if (is_active()) {
    return raise(*py.PyExc_RuntimeError, kAlreadyActive);
  }
  if (!session_id_is_valid(session_id)) {
    return raise(*py.PyExc_ValueError, "session_id must be a non-empty string");
  }
  const Ref root = make_directory(output_dir);
  const Ref root_text(root ? py.PyObject_Str(root.get()) : nullptr);
  const Ref bytes(root_text ? py.PyUnicode_EncodeFSDefault(root_text.get())
                            : nullptr);
  if (!bytes) {
    return nullptr;
  }
  recorder::StartOptions options;
  options.directory.assign(py.PyBytes_AsString(bytes.get()),
                           static_cast<size_t>(py.PyBytes_Size(bytes.get())));
  options.file_prefix = "python_host";
  if (session_id != nullptr && session_id != py._Py_NoneStruct) {
    options.session_id = Text(session_id).view();
  }
  // A session that SHP_OUTPUT_DIR began ends here, and is asked for no more.
  if (spans().has_deferred() && !resolve_deferred()) {
    return nullptr;
  }
  spans().clear();
  std::optional<Result<std::string>> path;
  {
    const WithoutGil others_run;
    path.emplace(recorder::start_session(options));
  }
  spans().asked_for = path->has_value();
  return path->has_value() ? path_of(**path)
                           : raise_error(path->error(), root_text.get());
}

// One warning a session: what went wrong, how often, and the first case.
struct Misuses {
  Misuse bad_args;
  Misuse bad_names;
  Misuse bad_marks;
};

bool warn_of_misuse(const Misuses& all) noexcept {
  if (all.bad_args.count + all.bad_names.count + all.bad_marks.count == 0) {
    return true;
  }
  char text[960];
  int length = std::snprintf(text, sizeof(text), "service_host_profiling: ");
  const auto add = [&](const Misuse& misuse, const char* what) {
    if (misuse.count != 0 && length < static_cast<int>(sizeof(text))) {
      const auto at = static_cast<size_t>(length);
      length += std::snprintf(text + at,
                              sizeof(text) - at,
                              "%s%llu %s (first: %s)",
                              text[at - 1] == ')' ? "; " : "",
                              static_cast<unsigned long long>(misuse.count),
                              what,
                              misuse.first);
    }
  };
  add(all.bad_args, "spans were written without their attrs");
  add(all.bad_names, "spans were not recorded for their names");
  add(all.bad_marks, "marks or counter values were not recorded");
  return py.PyErr_WarnEx(*py.PyExc_RuntimeWarning, text, 1) == 0;
}

class Closing {
 public:
  Closing() noexcept { g_closing = true; }
  ~Closing() { g_closing = false; }
};

PyObject* publish() {
  std::optional<Result<recorder::StopReport>> report;
  {
    const WithoutGil others_run;
    report.emplace(recorder::publish_session());
  }
  if (!report->has_value()) {
    return raise_error(report->error(), nullptr);
  }
  return path_of((*report)->path);
}

PyObject* stop() {
  const Lifecycle held;
  if (!held) {
    return nullptr;
  }
  if (!is_active() && !recorder::can_stop_again()) {
    return raise(*py.PyExc_RuntimeError, kNotActive);
  }
  Ref path;
  Misuses misuses;
  {
    const Closing closing;
    Status frozen;
    {
      const WithoutGil others_run;
      frozen = recorder::freeze_session();
    }
    if (!frozen) {
      return raise_error(frozen.error(), nullptr);
    }
    spans().held.clear();
    const bool resolved = resolve_deferred();
    misuses = {spans().bad_args, spans().bad_names, spans().bad_marks};
    std::optional<SavedException> interruption;
    if (!resolved) {
      interruption.emplace();
    }
    path.reset(publish());
    if (!resolved) {
      py.PyErr_Clear();
      path.reset();
    }
  }
  spans().clear();
  return path && warn_of_misuse(misuses) ? path.release() : nullptr;
}

constexpr Signature kStart{"start", {"output_dir", "session_id"}, 1, 1, 2};
constexpr Signature kStop{"stop", {}, 0, 0, 0};

// No C++ exception may pass through the interpreter.
template <typename Function>
PyObject* guarded(Function function) noexcept {
  try {
    return function();
  } catch (const std::exception& problem) {
    return raise(*py.PyExc_RuntimeError, problem.what());
  }
}

}  // namespace

PyObject* lifecycle_start(PyObject*,
                          PyObject* const* args,
                          Py_ssize_t count,
                          PyObject* keywords) noexcept {
  PyObject* parsed[3];
  if (!parse_arguments(kStart, args, count, keywords, parsed)) {
    return nullptr;
  }
  return guarded([&] { return start(parsed[0], parsed[1]); });
}

PyObject* lifecycle_stop(PyObject*,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* keywords) noexcept {
  PyObject* parsed[3];
  if (!parse_arguments(kStop, args, count, keywords, parsed)) {
    return nullptr;
  }
  return guarded([] { return stop(); });
}

PyObject* lifecycle_active(PyObject*, PyObject*) noexcept {
  return guarded([]() -> PyObject* {
    if (g_closing) {
      return none();
    }
    recorder::ActiveSession session;
    {
      // Another thread's start() may hold the recorder up.
      const WithoutGil others_run;
      session = recorder::active_session();
    }
    if (!session.active) {
      return none();
    }
    Ref path(path_of(session.path));
    Ref pid(py.PyLong_FromLongLong(session.pid));
    Ref both(path && pid ? py.PyTuple_New(2) : nullptr);
    if (both) {
      py.PyTuple_SetItem(both.get(), 0, path.release());
      py.PyTuple_SetItem(both.get(), 1, pid.release());
    }
    return both.release();
  });
}

PyObject* lifecycle_lock(PyObject*, PyObject*) noexcept {
  return new_reference(g_lock);
}

PyObject* lifecycle_after_fork(PyObject*, PyObject*) noexcept {
  g_closing = false;
  spans().clear();
  Ref lock(py.PyObject_CallObject(g_lock_type, nullptr));
  if (!lock) {
    return nullptr;
  }
  Ref old(g_lock);
  g_lock = lock.release();
  return none();
}

PyObject* lifecycle_at_exit(PyObject*, PyObject*) noexcept {
  return !spans().has_deferred() || recorder::recording() == 0 ||
                 resolve_deferred()
             ? none()
             : nullptr;
}

bool set_up_lifecycle() noexcept {
  if (g_lock != nullptr) {
    return true;
  }
  const Ref module(py.PyImport_ImportModule("_thread"));
  Ref type(module ? py.PyObject_GetAttrString(module.get(), "RLock") : nullptr);
  Ref lock(type ? py.PyObject_CallObject(type.get(), nullptr) : nullptr);
  if (!lock) {
    return false;
  }
  g_lock = lock.release();
  g_lock_type = type.release();
  return true;
}

void forget_lifecycle() noexcept {
  g_lock = nullptr;
  g_lock_type = nullptr;
  g_closing = false;
}

}  // namespace shp::python
