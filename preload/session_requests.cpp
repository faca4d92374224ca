#include "preload/session_requests.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "preload/output_directory.h"
#include "preload/process_facts.h"
#include "preload/recorder.h"

namespace shp::recorder {
namespace {

constexpr int kStartMs = 10'000;
constexpr int kStopMs = 600'000;
// A daemon that was killed is back in far less.
constexpr int64_t kComesBackNs = 1'000'000'000;

}  // namespace

Result<std::string> start_message(const SessionNames& names,
                                  uint32_t generation) {
  ArenaHeader& header = *g_process.arena->header;
  const std::string hostname = own_hostname();
  const std::string argv = own_argv();
  StartRequest request{};
  request.abi_version = kAbiVersion;
  request.generation = generation;
  std::memcpy(request.token, header.token, sizeof(request.token));
  request.pid = getpid();
  request.ppid = getppid();
  request.pid_namespace = own_pid_namespace();
  request.start = sample_clocks(static_cast<ClockKind>(header.clock_kind));
  StartTexts texts;
  texts[kSessionIdText] = names.session_id;
  texts[kFileNameText] = names.file;
  texts[kDirectoryText] = names.directory;
  texts[kHostnameText] = hostname;
  texts[kArgvText] = argv;
  return pack_start(request, texts);
}

// The connection that stays open. `flags`: StartFlag, less kHasPidfd.
Result<UniqueFd> send_start(std::string message,
                            int directory,
                            uint32_t flags) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  flags |= pidfd ? kHasPidfd : 0U;
  std::memcpy(
      message.data() + offsetof(StartRequest, flags), &flags, sizeof(flags));
  const int fds[] = {g_process.arena->memfd.get(), directory, pidfd.get()};
  Result<UniqueFd> socket = connect_daemon(true);
  if (!socket) {
    return socket;
  }
  const Result<DaemonReply> reply =
      ask_daemon(socket->get(), message, fds, pidfd ? 3 : 2, kStartMs);
  if (!reply) {
    return tl::unexpected<Error>(reply.error());
  }
  return socket;
}

bool was_cut_off(const Error& why) {
  return why.errno_value == ECONNRESET || why.errno_value == EPIPE;
}

namespace {

// No daemon knows of our session any more: another one goes on with it.
Status hand_over_again(const StopAsked& now) {
  std::string path;
  const Result<UniqueFd> directory = open_directory(now.directory, path);
  if (!directory) {
    return tl::unexpected<Error>(directory.error());
  }
  const Result<UniqueFd> socket =
      send_start(now.start_message, directory->get(), kResume);
  if (!socket) {
    return tl::unexpected<Error>(socket.error());
  }
  return {};
}

Result<DaemonReply> ask_once(const StopAsked& now) {
  StopRequest request{};
  std::memcpy(
      request.token, g_process.arena->header->token, sizeof(request.token));
  request.generation = now.generation;
  request.stop = now.stop;
  const Result<UniqueFd> socket = connect_daemon(false);
  if (!socket) {
    return tl::unexpected<Error>(Error{socket.error().message, EHOSTDOWN});
  }
  return ask_daemon(socket->get(), pack_stop(request), nullptr, 0, kStopMs);
}

}  // namespace

Result<DaemonReply> ask_to_stop(const StopAsked& now) {
  const int64_t began = monotonic_ns();
  for (int hand_overs = 0;;) {
    Result<DaemonReply> reply = ask_once(now);
    if (reply) {
      return reply;
    }
    const int why = reply.error().errno_value;
    const int64_t waited = monotonic_ns() - began;
    const bool gone =
        why == ESRCH || (why == EHOSTDOWN && waited > kComesBackNs);
    if (gone && hand_overs++ < 2) {
      const Status handed_over = hand_over_again(now);
      if (!handed_over) {
        return tl::unexpected<Error>(handed_over.error());
      }
    } else if (gone || waited > kStopMs * int64_t{1'000'000} ||
               (why != EHOSTDOWN && !was_cut_off(reply.error()))) {
      return reply;
    } else {
      const timespec pause{0, 5'000'000};
      nanosleep(&pause, nullptr);
    }
  }
}

}  // namespace shp::recorder
