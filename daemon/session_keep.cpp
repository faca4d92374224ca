#include "daemon/session_keep.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

namespace shp {
namespace {

constexpr uint64_t kStateMagic = 0x3145'5441'5453'5048;  // "HPSTATE1"
// A session that its daemon dies over so often, before it has drained once, is
// let go: it would take all the others with it for ever.
constexpr uint32_t kMaxTries = 16;
constexpr std::string_view kRoles = "adpflxs";

// At the start of the state, then groups, then texts.
struct State {
  uint64_t magic;
  uint32_t version;  // sizeof(State)
  uint32_t tries;    // daemons that took it over and did not get to drain it
  uint32_t answered;
  uint32_t has_result;
  Reply result;
  StartRequest fixed;
  ClockSample daemon_start;
  uint64_t capabilities;
  uint32_t umask;
  int32_t pid;
  uint32_t uid;
  uint32_t gid;
  uint32_t groups;
  uint32_t text_bytes[kStartTexts];
};

template <typename Field>
void write_field(int fd, const Field& value, size_t offset) {
  [[maybe_unused]] const ssize_t wrote =
      pwrite(fd, &value, sizeof(value), static_cast<off_t>(offset));
}

void append(std::string* to, const void* bytes, size_t count) {
  to->append(static_cast<const char*>(bytes), count);
}

std::string packed(const SessionRequest& request) {
  State state{};
  state.magic = kStateMagic;
  state.version = sizeof(State);
  state.fixed = request.fixed;
  state.daemon_start = request.daemon_start;
  state.capabilities = request.rights.capabilities;
  state.umask = request.rights.umask;
  state.pid = request.peer.pid;
  state.uid = request.peer.uid;
  state.gid = request.peer.gid;
  state.groups = static_cast<uint32_t>(request.peer.groups.size());
  for (size_t i = 0; i < kStartTexts; ++i) {
    state.text_bytes[i] = static_cast<uint32_t>(request.texts[i].size());
  }
  std::string out;
  append(&out, &state, sizeof(state));
  append(&out, request.peer.groups.data(), state.groups * sizeof(gid_t));
  for (const std::string& text : request.texts) {
    out += text;
  }
  return out;
}

bool take(std::string_view* rest, void* to, size_t bytes) {
  if (rest->size() < bytes) {
    return false;
  }
  rest->copy(static_cast<char*>(to), bytes);  // none from nowhere is fine
  rest->remove_prefix(bytes);
  return true;
}

bool unpack(std::string_view rest, SessionRequest* request) {
  State state;
  if (!take(&rest, &state, sizeof(state)) || state.magic != kStateMagic ||
      state.version != sizeof(State) ||
      rest.size() < state.groups * sizeof(gid_t)) {
    return false;
  }
  request->fixed = state.fixed;
  request->daemon_start = state.daemon_start;
  request->rights = {state.capabilities, state.umask};
  request->peer.pid = state.pid;
  request->peer.uid = state.uid;
  request->peer.gid = state.gid;
  request->peer.groups.resize(state.groups);
  request->tries = state.tries;
  request->answered = state.answered != 0;
  if (state.has_result != 0) {
    request->result = state.result;
  }
  bool good =
      take(&rest, request->peer.groups.data(), state.groups * sizeof(gid_t));
  for (size_t i = 0; i < kStartTexts; ++i) {
    good = good && rest.size() >= state.text_bytes[i];
    if (good) {
      request->texts[i] = rest.substr(0, state.text_bytes[i]);
      rest.remove_prefix(state.text_bytes[i]);
    }
  }
  return good;
}

std::string whole(int fd) {
  std::string text;
  char piece[4096];
  for (ssize_t got = 0;
       (got = pread(
            fd, piece, sizeof(piece), static_cast<off_t>(text.size()))) > 0;) {
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

// "12a": session 12's arena. 0 for any other name.
uint64_t session_of(const std::string& name) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(name.c_str(), &end, 10);
  const bool ours = name.size() >= 2 && end == name.c_str() + name.size() - 1 &&
                    kRoles.find(*end) != std::string_view::npos;
  return ours ? number : 0;
}

UniqueFd* place_of(char role, SessionRequest* request) {
  switch (role) {
    case 'a':
      return &request->arena;
    case 'd':
      return &request->directory;
    case 'p':
      return &request->peer.pidfd;
    case 'f':
      return &request->file;
    case 'l':
      return &request->life_line;
    case 'x':
      return &request->spool;
    default:
      return &request->state;
  }
}

bool is_whole(SessionRequest* request) {
  return request->arena && request->directory && request->state &&
         unpack(whole(request->state.get()), request);
}

}  // namespace

SessionKeep::SessionKeep(DescriptorStore& store, SessionRequest& request)
    : store_(store), request_(request) {
  if (request.state) {
    for (const char role : kRoles) {
      kept_ += place_of(role, &request)->get() >= 0 ? std::string(1, role) : "";
    }
  }
}

void SessionKeep::put(char role, int fd) {
  if (fd >= 0) {
    store_.keep(std::to_string(request_.kept_as) + role, fd);
    kept_ += role;
  }
}

Status SessionKeep::begin() {
  if (request_.state) {
    write_field(
        request_.state.get(), request_.tries + 1, offsetof(State, tries));
    return {};
  }
  request_.state.reset(memfd_create("shpd-session", MFD_CLOEXEC));
  const std::string bytes = packed(request_);
  if (!request_.state ||
      write(request_.state.get(), bytes.data(), bytes.size()) !=
          static_cast<ssize_t>(bytes.size())) {
    return errno_error("no memory for the session's state", errno);
  }
  put('a', request_.arena.get());
  put('d', request_.directory.get());
  put('p', request_.peer.pidfd.get());
  put('l', request_.life_line.get());
  put('s', request_.state.get());
  return {};
}

void SessionKeep::keep_file(int fd) {
  if (kept_.find('f') == std::string::npos) {
    put('f', fd);
  }
}

void SessionKeep::keep_spool(int fd) {
  if (kept_.find('x') == std::string::npos) {
    put('x', fd);
  }
}

void SessionKeep::note_answered() {
  write_field(request_.state.get(), uint32_t{1}, offsetof(State, answered));
}

void SessionKeep::note_going_well() {
  write_field(request_.state.get(), uint32_t{0}, offsetof(State, tries));
}

void SessionKeep::note_result(const Reply& reply) {
  write_field(request_.state.get(), reply, offsetof(State, result));
  write_field(request_.state.get(), uint32_t{1}, offsetof(State, has_result));
}

// The state goes first: without it the rest is nothing.
void SessionKeep::end() {
  for (auto role = kept_.rbegin(); role != kept_.rend(); ++role) {
    store_.drop(std::to_string(request_.kept_as) + *role);
  }
  kept_.clear();
}

std::vector<SessionRequest> kept_sessions(std::vector<NamedFd> inherited,
                                          DescriptorStore& store,
                                          std::vector<NamedFd>* others) {
  std::map<uint64_t, SessionRequest> found;
  std::map<uint64_t, std::vector<std::string>> names;
  for (NamedFd& one : inherited) {
    const uint64_t number = session_of(one.name);
    if (number == 0) {
      others->push_back(std::move(one));
      continue;
    }
    store.know(one.name, one.fd.get());
    names[number].push_back(one.name);
    *place_of(one.name.back(), &found[number]) = std::move(one.fd);
  }
  std::vector<SessionRequest> sessions;
  for (auto& [number, request] : found) {
    request.kept_as = number;
    request.resumed = true;
    const bool good = is_whole(&request);
    if (good && request.tries < kMaxTries) {
      sessions.push_back(std::move(request));
      continue;
    }
    spdlog::error("session {} of an earlier shpd is let go: {}",
                  number,
                  good ? "daemons died over it" : "its start was cut short");
    for (const std::string& name : names[number]) {
      store.drop(name);
    }
  }
  return sessions;
}

}  // namespace shp
