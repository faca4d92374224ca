// Args of spans: kept from the start to the end, and written behind a record
// or, when they are long, in parts before it.

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "preload/thread_state.h"

namespace shp::recorder {
namespace {

// A record with its payload: one unit, then 4 bytes of length and the text.
constexpr uint32_t kPartBytes = kMaxPayloadBytes - 64;

uint32_t units_for(uint64_t payload) {
  return static_cast<uint32_t>(1 + (payload + kRecordBytes - 1) / kRecordBytes);
}

char* put_text(char* at, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  std::memcpy(at, &length, sizeof(length));
  std::memcpy(at + sizeof(length), text.data(), text.size());
  return at + sizeof(length) + text.size();
}

// Sends what does not fit one record ahead; `text` is left empty. False: full.
bool write_parts(ThreadState& state, uint64_t id, std::string_view& text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kPartBytes);
    const uint32_t units = units_for(sizeof(uint32_t) + part.size());
    Record* record = state.writer.reserve(units);
    if (record == nullptr) {
      return false;
    }
    *record = Record{kArgsPart, 0, static_cast<uint16_t>(units), 0, 0, 0, id};
    put_text(reinterpret_cast<char*>(record + 1), part);
    state.writer.publish(units);
    text.remove_prefix(part.size());
  }
  return true;
}

}  // namespace

bool write_record(ThreadState& state, Record head, Payload payload) noexcept {
  uint64_t bytes = payload.key != 0 ? sizeof(uint64_t) : 0;
  if (payload.json.size() > kPartBytes) {
    if (!write_parts(state, head.id, payload.json)) {
      return false;
    }
    head.flags = static_cast<uint8_t>(head.flags | kHasParts);
  } else if (!payload.json.empty()) {
    head.flags = static_cast<uint8_t>(head.flags | kHasArgs);
    bytes += sizeof(uint32_t) + payload.json.size();
  }
  head.units = static_cast<uint16_t>(units_for(bytes));
  Record* record = state.writer.reserve(head.units);
  if (record == nullptr) {
    return false;
  }
  *record = head;
  char* at = reinterpret_cast<char*>(record + 1);
  if (payload.key != 0) {
    std::memcpy(at, &payload.key, sizeof(payload.key));
    at += sizeof(payload.key);
  }
  if ((head.flags & kHasArgs) != 0) {
    put_text(at, payload.json);
  }
  state.writer.publish(head.units);
  return true;
}

namespace {

// What stands before the text in a slot's mapping.
struct KeptArgs {
  uint32_t mapped_bytes;
  uint32_t length;
};

uint32_t mapped_bytes(const char* kept) {
  return reinterpret_cast<const KeptArgs*>(kept)->mapped_bytes;
}

void unmap_args(char*& kept) {
  if (kept != nullptr) {
    munmap(kept, mapped_bytes(kept));
    kept = nullptr;
  }
}

// Args that were given at the start wait in a mapping of their slot's own, kept
// for the next: no malloc, which a signal handler might have interrupted.
bool keep_args(ThreadState& state, uint32_t index, std::string_view json) {
  char*& kept = state.args_text[index];
  if (kept != nullptr && mapped_bytes(kept) < sizeof(KeptArgs) + json.size()) {
    unmap_args(kept);
  }
  if (kept == nullptr) {
    const uint64_t bytes = (sizeof(KeptArgs) + json.size() + kPageBytes - 1) &
                           ~uint64_t{kPageBytes - 1};
    void* at = mmap(nullptr,
                    bytes,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS,
                    -1,
                    0);
    if (at == MAP_FAILED) {
      return false;
    }
    kept = static_cast<char*>(at);
    new (kept) KeptArgs{static_cast<uint32_t>(bytes), 0};
  }
  auto* header = reinterpret_cast<KeptArgs*>(kept);
  header->length = static_cast<uint32_t>(json.size());
  std::memcpy(kept + sizeof(KeptArgs), json.data(), json.size());
  state.slot_args[index] = 1;
  return true;
}

}  // namespace

std::string_view kept_args(const ThreadState& state, uint32_t index) noexcept {
  const char* kept = state.args_text[index];
  return {kept + sizeof(KeptArgs),
          reinterpret_cast<const KeptArgs*>(kept)->length};
}

void unmap_kept_args(ThreadState& state) noexcept {
  for (char*& kept : state.args_text) {
    unmap_args(kept);
  }
}

bool finish_span(ThreadState& state,
                 SpanId id,
                 uint64_t now,
                 const EndArgs& args) noexcept {
  OpenSpan span;
  if (!find_open(state, id, span)) {
    return false;
  }
  enter(state);
  Record head{
      kSpan, 0, 1, span.name, span.start_ticks, now, static_cast<uint64_t>(id)};
  EndArgs kept = args;
  if (kept.json.size() > kMaxArgsBytes) {
    kept.json = {};
    kept.bad = true;
  }
  if (kept.bad) {
    head.flags = kBadArgs;
  }
  if (kept.deferred != 0) {
    head.flags = static_cast<uint8_t>(head.flags | kHasDeferred);
  }
  const bool written = write_record(state, head, {kept.deferred, kept.json});
  if (!written) {
    add_own(state.writer.ring().overflow, uint64_t{1});
  }
  close_open(state, id);
  leave(state);
  return written;
}

SpanId begin_with_args(uint32_t name,
                       uint32_t generation,
                       std::string_view json) noexcept {
  const SpanId id = begin(name, generation);
  const auto index = static_cast<uint32_t>(id) & kNoSlot;
  if (id == kNotRecorded || json.empty()) {
    return id;
  }
  const KeepErrno keep;
  ThreadState& state = *t_state;
  enter(state);
  if (index >= kOpenSlots || json.size() > kMaxArgsBytes ||
      !keep_args(state, index, json)) {
    running_arena().header->bad_args.fetch_add(1, std::memory_order_relaxed);
  }
  leave(state);
  return id;
}

bool end_with_args(SpanId id, const EndArgs& args) noexcept {
  const uint32_t generation = recording();
  ThreadState* state = t_state;
  if (generation == 0 || id < 0 || state == nullptr) {
    return false;
  }
  const uint64_t now = args.end_ticks != 0 ? args.end_ticks : stamp(*state);
  const KeepErrno keep;
  if (state == &g_under_construction || state->generation != generation ||
      !current(*state) || state->busy.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  return finish_span(*state, id, now, args);
}

bool write_deferred(uint32_t generation,
                    uint64_t key,
                    std::string_view json) noexcept {
  ThreadState* state = ready_state(generation);
  if (state == nullptr) {
    return false;
  }
  enter(*state);
  const Record head{kDeferred, 0, 1, 0, 0, 0, key};
  const bool written = write_record(*state, head, {key, json});
  leave(*state);
  return written;
}

}  // namespace shp::recorder
