#include "daemon/session.h"

#include <unistd.h>

#include <cstring>

#include "common/base/clock.h"
#include "daemon/futex.h"
#include "daemon/reply.h"
#include "daemon/session_thread.h"

namespace shp {
namespace {

// Formatting, file names and one page of locals: little, times many sessions.
constexpr size_t kStackBytes = 256U << 10;
// Stops that wait for their answer at once: a client that asks again has
// mostly given up on the first.
constexpr size_t kMaxStops = 16;
constexpr int64_t kPredecessorWaitNs = 10'000'000'000;

}  // namespace

Session::Session(SessionRequest request,
                 int done_event,
                 DescriptorStore& store,
                 std::shared_ptr<Session> before)
    : request_(std::move(request)),
      done_event_(done_event),
      store_(store),
      before_(std::move(before)) {}

Session::~Session() {
  join();
}

Result<std::shared_ptr<Session>> Session::launch(
    SessionRequest request,
    int done_event,
    DescriptorStore& store,
    std::shared_ptr<Session> before) {
  std::shared_ptr<Session> session(
      new Session(std::move(request), done_event, store, std::move(before)));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const int failed = pthread_create(
      &session->thread_, &attributes, &Session::thread_main, session.get());
  pthread_attr_destroy(&attributes);
  if (failed != 0) {
    return errno_error("no thread for the session", failed);
  }
  session->joinable_ = true;
  return session;
}

void* Session::thread_main(void* self) {
  auto* session = static_cast<Session*>(self);
  pthread_setname_np(pthread_self(), "shpd-session");
  run_session(*session);
  return nullptr;
}

void Session::join() {
  if (joinable_) {
    pthread_join(thread_, nullptr);
    joinable_ = false;
  }
}

// The thread sleeps on a word of the arena (session_thread.cpp): said_ changes
// first, so that a thread that is about to sleep sees one of the two. Under the
// lock, since the word goes when the thread unmaps the arena.
template <typename Change>
void Session::tell(Change&& change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  change();
  said_.fetch_add(1, std::memory_order_seq_cst);
  if (wake_word_ != nullptr) {
    wake_word_->fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(wake_word_);
  }
}

void Session::set_wake_word(std::atomic<uint32_t>* word) {
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_word_ = word;
}

bool Session::order_stop(StopOrder& order) {
  bool taken = false;
  tell([&] {
    if (!finished()) {
      if (stop_orders_.size() == kMaxStops) {
        stop_orders_.erase(stop_orders_.begin());
      }
      stop_orders_.push_back(std::move(order));
      taken = true;
    }
  });
  return taken;
}

void Session::note_exit(ExitStatus status) {
  tell([&] {
    news_.exited = true;
    news_.exit_status = status;
  });
}

void Session::note_hang_up() {
  tell([&] { news_.hung_up = true; });
}

void Session::note_replaced(bool same_arena) {
  tell([&] {
    news_.replaced = true;
    news_.superseded = news_.superseded || same_arena;
  });
}

void Session::note_shutdown() {
  tell([&] { news_.shutdown = true; });
}

SessionNews Session::news() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return news_;
}

std::vector<StopOrder> Session::take_stop_orders() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(stop_orders_, {});
}

bool Session::has_token(const uint8_t* token) const {
  return std::memcmp(
             request_.fixed.token, token, sizeof(request_.fixed.token)) == 0;
}

bool Session::is(const uint8_t* token, uint32_t generation) const {
  return request_.fixed.generation == generation && has_token(token);
}

// Two drains of one arena at once would free each other's blocks.
bool Session::wait_for_predecessor() {
  if (!before_) {
    return true;
  }
  const int64_t deadline = monotonic_ns() + kPredecessorWaitNs;
  while (!before_->finished() && monotonic_ns() < deadline) {
    futex_wait(&before_->finished_, 0, 100'000'000);
  }
  return before_->finished();
}

void Session::answer_start(const Reply& reply, std::string_view text) {
  send_reply(request_.life_line.get(), reply, text);
}

void Session::finish(SessionResult result) {
  facts_.state.store("finished", std::memory_order_relaxed);
  before_.reset();
  std::vector<StopOrder> late;
  {
    // With the lock: a stop is either among these or told that we finished.
    const std::lock_guard<std::mutex> lock(mutex_);
    result_ = std::move(result);
    wake_word_ = nullptr;
    late.swap(stop_orders_);
    finished_.store(1, std::memory_order_release);
  }
  for (const StopOrder& order : late) {
    send_reply(order.connection.get(), result_.reply, result_.text);
  }
  futex_wake_all(&finished_);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = write(done_event_, &one, sizeof(one));
}

}  // namespace shp
