#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/run/capture.h"
#include "cli/run/child.h"
#include "cli/run/child_environment.h"
#include "cli/run/locate.h"
#include "cli/run/preloadable.h"
#include "cli/run/private_daemon.h"
#include "cli/run/report.h"
#include "cli/terminal_text.h"
#include "common/base/clock.h"
#include "common/jsonl/line_reader.h"
#include "common/protocol/socket_path.h"

namespace shp {
namespace {

namespace fs = std::filesystem;

// What env, nice and timeout use for a failure of their own.
constexpr int kOwnFailure = 125;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

// What the library holds, preload/python/service_host_profiling/presets.
constexpr std::string_view kPresets[] = {"sglang", "torch", "vllm"};

constexpr int kQueryMs = 2000;
constexpr int kStepMs = 20;
constexpr int kEndMs = 10'000;
// How long processes that outlive the command get to end by themselves: helpers
// of multiprocessing and the like do so within a moment.
constexpr int64_t kLingerNs = 1'000'000'000;

struct RunOptions {
  std::string directory = "shp-out";
  std::string socket;
  std::vector<std::string> trace;
  std::vector<std::string> inject;
  double wait_s = 30;
  bool quiet = false;
  std::vector<std::string> command;
};

int fail(const std::string& message, int status = kOwnFailure) {
  say_error("run", message);
  return status;
}

// One run, from the options to the report.
class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options) {}

  // The exit status of a run that could not begin. One that began ends this
  // process as its program ended.
  int go();

 private:
  Status prepare();
  Status find_daemon_socket();
  Status find_function_lists();
  Environment environment() const;
  void wait_for_files(Child& child, const Capture& capture);
  bool wait_is_over(const Capture& capture, int64_t waited_ns);
  std::vector<int64_t> recording_now() const;
  RunOutcome outcome(const Capture& capture) const;

  const RunOptions& options_;
  std::string directory_;  // absolute
  std::string library_;
  std::string socket_;
  std::string function_lists_;  // SHP_TRACE
  PrivateDaemon daemon_;
  bool daemon_is_ours_ = false;
  std::vector<int64_t> still_recording_;
};

Status Run::prepare() {
  auto library = find_library(own_folder());
  if (!library) {
    return tl::unexpected(library.error());
  }
  library_ = *library;
  if (library_.find_first_of(" :") != std::string::npos) {
    return error(library_ +
                 ": LD_PRELOAD cannot hold a path with a space or a "
                 "colon; set SHP_LIB to a copy or link elsewhere");
  }
  std::error_code failed;
  fs::create_directories(options_.directory, failed);
  if (failed) {
    return error(options_.directory + ": " + failed.message());
  }
  directory_ = fs::canonical(options_.directory, failed).string();
  if (failed || access(directory_.c_str(), W_OK | X_OK) != 0) {
    return errno_error(options_.directory, failed ? failed.value() : errno);
  }
  auto lists = find_function_lists();
  return lists ? find_daemon_socket() : lists;
}

// Files by absolute paths: the program may change its directory.
Status Run::find_function_lists() {
  for (const std::string& word : options_.trace) {
    std::error_code failed;
    std::string list = word;
    if (fs::is_regular_file(word, failed)) {
      list = fs::canonical(word, failed).string();
    } else if (std::find(std::begin(kPresets), std::end(kPresets), word) ==
               std::end(kPresets)) {
      return error("--trace: " + word +
                   " is neither a file nor one of sglang, torch, vllm");
    }
    if (list.find(',') != std::string::npos) {
      return error("--trace: " + list + ": a path with a comma cannot be used");
    }
    function_lists_ += (function_lists_.empty() ? "" : ",") + list;
  }
  return {};
}

Status Run::find_daemon_socket() {
  socket_ = answering_socket(
      options_.socket.empty() ? socket_candidates(current_socket_environment())
                              : std::vector<std::string>{options_.socket});
  if (!socket_.empty()) {
    return {};
  }
  if (!options_.socket.empty()) {
    return error("no daemon answers at " + options_.socket);
  }
  const auto program = find_daemon(own_folder());
  if (!program) {
    return tl::unexpected(program.error());
  }
  daemon_is_ours_ = true;
  auto started = daemon_.start(*program);
  socket_ = daemon_.socket();
  return started;
}

Environment Run::environment() const {
  const char* users = std::getenv("LD_PRELOAD");
  Variables changes = {
      {"LD_PRELOAD", preload_value(users ? users : "", library_)},
      {"SHP_OUTPUT_DIR", directory_},
      {"SHP_SOCKET", socket_},
      {"HOST_SERVICE_PROFILER_ENABLE", "1"}};
  if (!function_lists_.empty()) {
    changes.emplace_back("SHP_TRACE", function_lists_);
    if (std::getenv("SHP_LOG") == nullptr) {
      // Names that are gone are told in the process that would have had them.
      changes.emplace_back("SHP_LOG", "1");
    }
  }
  std::string inject;
  for (const std::string& api : options_.inject) {
    inject += (inject.empty() ? "" : ",") + api;
  }
  if (!inject.empty()) {
    changes.emplace_back("SHP_INJECT", inject);
  }
  return with_variables(environ, changes);
}

int Run::go() {
  if (auto ready = prepare(); !ready) {
    return fail(ready.error().message);
  }
  const Capture capture(directory_);
  int status = 0;
  {
    Child child;
    if (auto started = child.start(options_.command, environment()); !started) {
      daemon_.end(kEndMs);
      return fail(
          started.error().message,
          started.error().errno_value == ENOENT ? kNotFound : kNotExecutable);
    }
    status = child.wait();
    wait_for_files(child, capture);
  }
  if (still_recording_.empty() && !daemon_.end(kEndMs)) {
    fail("the private daemon does not end; it is left alone");
  }
  if (!options_.quiet) {
    fmt::print(stderr, "{}", report(outcome(capture)));
  }
  end_like(status);
}

void Run::wait_for_files(Child& child, const Capture& capture) {
  const int64_t begin = monotonic_ns();
  while (!wait_is_over(capture, monotonic_ns() - begin)) {
    if (child.interrupted_within(kStepMs)) {
      return;
    }
  }
}

// Over when nothing is pending; when only processes that go on are; or when the
// user's patience is.
bool Run::wait_is_over(const Capture& capture, int64_t waited_ns) {
  if (capture.pending().empty()) {
    still_recording_.clear();
    return true;
  }
  still_recording_ = recording_now();
  return (!still_recording_.empty() && waited_ns > kLingerNs) ||
         static_cast<double>(waited_ns) > options_.wait_s * 1e9;
}

// Processes that live and have a session in our directory.
std::vector<int64_t> Run::recording_now() const {
  std::vector<int64_t> pids;
  if (const auto status = query_daemon(socket_, kQueryMs)) {
    for (const SessionStatus& session : status->sessions) {
      const bool ours = session.directory == directory_ ||
                        session.directory.starts_with(directory_ + "/");
      if (ours && session.state == "recording") {
        pids.push_back(session.pid);
      }
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

RunOutcome Run::outcome(const Capture& capture) const {
  RunOutcome result;
  result.directory = options_.directory;
  for (const std::string& path : capture.closed()) {
    const auto file = open_host_file(path);
    if (file) {
      // As the user named the directory, for the commands that we print.
      result.files.push_back(
          {options_.directory + path.substr(directory_.size()),
           file->metadata()});
    } else {
      result.problems.push_back(file.error().message);
    }
  }
  const size_t pending = capture.pending().size();
  result.still_recording = still_recording_;
  result.unpublished = pending - std::min(pending, still_recording_.size());
  result.traces = capture.traces();
  const char* path = std::getenv("PATH");
  result.why_nothing =
      why_not_preloaded(options_.command.front(), path ? path : "");
  return result;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand(
      "run", "Run a program and record the spans of all its processes");
  verb->add_option("-o,--output-dir",
                   options->directory,
                   "Where the host files go (made when it is not there)")
      ->capture_default_str();
  verb->add_option("--socket",
                   options->socket,
                   "The socket of a running daemon to use; without it, one "
                   "that runs for this user or this host, else a private one "
                   "is started");
  verb->add_option("--trace",
                   options->trace,
                   "Functions to record by name: sglang, vllm, torch, or a "
                   "FILE of lines MODULE:FUNCTION")
      ->type_name("FILE|PRESET,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--inject",
                   options->inject,
                   "Record what programs tell these: nvtx, itt, mstx")
      ->type_name("API,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"nvtx", "itt", "mstx"}));
  verb->add_option("--wait",
                   options->wait_s,
                   "Seconds to wait for the daemon to publish, at most")
      ->capture_default_str();
  verb->add_flag("-q,--quiet", options->quiet, "No summary at the end");
  verb->add_option("command", options->command, "The program and its arguments")
      ->required();
  verb->footer(
      "Example:\n"
      "  shp run -o out -- python3 app.py --epochs 1\n"
      "  shp run --trace torch -- python3 train.py\n"
      "Exit status: the program's; 128 + N when signal N ended it; 127 not\n"
      "found, 126 not executable, 125 when shp itself could not begin.");
  verb->callback([options, &status] { status = Run(*options).go(); });
}

}  // namespace shp
