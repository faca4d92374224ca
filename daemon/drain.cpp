#include "daemon/drain.h"

#include <algorithm>
#include <cstring>

#include "daemon/drain_ring.h"
#include "daemon/futex.h"

namespace shp {
namespace {

// Of one ring in one round, so that a busy thread does not keep the others
// waiting; a block holds 32 KiB.
constexpr size_t kRingBudget = 2U << 20;

// A counter read right after the tail may lag behind the writer's own reading
// of it by the skew of two cores; generous, as it only keeps lies out.
constexpr uint64_t kTickSlack = 100'000;

int64_t lower_bound_ns(const ClockSample& sample) {
  return sample.monotonic_ns - sample.uncertainty_ns;
}

}  // namespace

Drain::Drain(const ArenaView& arena,
             LineWriter& writer,
             DeferredSpool& spool,
             const Settings& settings)
    : arena_(arena),
      writer_(writer),
      spool_(spool),
      settings_(settings),
      names_(arena),
      clock_(arena.clock_kind(), settings.start),
      scratch_(kBlockBytes),
      commit_index_(
          arena.header().commit_index.load(std::memory_order_acquire) & 1),
      first_ticks_(settings.start.ticks - settings.start.tick_window),
      last_ticks_(settings.start.ticks),
      first_ns_(lower_bound_ns(settings.start)),
      last_ns_(settings.start.monotonic_ns) {}

Drain::~Drain() = default;

Drain::Ring& Drain::ring_at(uint32_t index) {
  while (rings_.size() <= index) {
    const auto next = static_cast<uint32_t>(rings_.size());
    rings_.emplace_back(next);
    rings_.back().exists = arena_.ring_exists(next);
  }
  // A thread that claimed a later ring may have raised rings_high before the
  // thread of this one populated it: looked for until it is there.
  Ring& ring = rings_[index];
  if (!ring.exists) [[unlikely]] {
    ring.exists = arena_.ring_exists(index);
  }
  return ring;
}

void Drain::see_tails() {
  seen_.clear();
  const uint32_t count = arena_.rings_in_use();
  for (uint32_t i = 0; i < count; ++i) {
    Seen seen{};
    if (look_at(i, &seen)) {
      seen_.push_back(seen);
    }
  }
}

bool Drain::look_at(uint32_t index, Seen* seen) {
  Ring& ring = ring_at(index);
  if (!ring.exists || ring.reader.broken() || ring.drained_whole) {
    return false;
  }
  RingHeader& shared = arena_.ring(index);
  const uint32_t state = shared.state.load(std::memory_order_acquire);
  const uint64_t tail = shared.tail.load(std::memory_order_acquire);
  if (state == kFree || tail == 0) {
    return false;
  }
  if (!ring.reader.opened()) {
    open_reader(index, ring);
    if (ring.reader.broken()) {
      return false;
    }
  }
  // A reader that was just opened counts as behind: its first round writes its
  // position into the commit half that an earlier session may have left old.
  *seen = {index, tail, state == kReleased};
  return seen->released || !ring.reader.at(tail);
}

void Drain::open_reader(uint32_t index, Ring& ring) {
  RingHeader& shared = arena_.ring(index);
  const uint64_t position =
      shared.drained[commit_index_].load(std::memory_order_relaxed);
  ring.reader.open(position,
                   shared.first_block.load(std::memory_order_relaxed));
  const uint32_t session =
      shared.drained_session[commit_index_].load(std::memory_order_relaxed);
  if (session == kRingBroken) {
    ring.reader.break_off();
    return;
  }
  ring.session = session;
  ring.in_session = session == settings_.generation;
  ring.has_lines = ring.in_session && position != 0;
}

void Drain::round(const ClockSample& now) {
  clock_.add(now);
  last_clock_ = now;
  if (!finishing_) {
    last_ticks_ = now.ticks + now.tick_window + kTickSlack;
    last_ns_ = std::max(last_ns_, now.monotonic_ns);
  }
  last_bytes_ = 0;
  has_more_ = false;
  for (const Seen& seen : seen_) {
    read_ring(seen);
  }
}

void Drain::read_ring(const Seen& seen) {
  const size_t budget = finishing_ ? finish_budget_ : kRingBudget;
  Ring& ring = rings_[seen.ring];
  if (!ring.identified) {
    identify(seen.ring, ring);
  }
  const ReadState state = ring.reader.read(
      arena_, seen.tail, budget, scratch_.data(), Visitor{*this, ring});
  last_bytes_ += ring.reader.last_bytes();
  if (finishing_) {
    finish_budget_ -= std::min(finish_budget_, ring.reader.last_bytes());
  }
  changed_.push_back(seen.ring);
  has_more_ = has_more_ || state == ReadState::kMore;
  if (state == ReadState::kBroken) {
    ++broken_rings_;
  }
  if (seen.released && state == ReadState::kCaughtUp) {
    end_ring(seen.ring, ring);
  }
}

// A thread has gone and all it left is read.
void Drain::end_ring(uint32_t index, Ring& ring) {
  ring.drained_whole = true;
  ring.reader.give_up_pieces();
  count_open_for_good(index);
  if (ring.identified && ring.has_lines) {
    writer_.thread(ring.tid, ring.name);
    ring.has_lines = false;
  }
}

// The claiming thread describes itself before its first record, so this runs
// with the first round that has one.
void Drain::identify(uint32_t index, Ring& ring) {
  const RingHeader& shared = arena_.ring(index);
  ring.tid = shared.tid.load(std::memory_order_relaxed);
  std::memcpy(ring.name, shared.thread_name, sizeof(ring.name));
  ring.name[sizeof(ring.name) - 1] = '\0';
  ring.text = span_thread_text(settings_.pid, ring.tid);
  // A ring whose tail is where a claim begins has no record yet.
  ring.identified =
      shared.tail.load(std::memory_order_relaxed) !=
      position_of(shared.first_block.load(std::memory_order_relaxed),
                  sizeof(BlockHeader));
}

void Drain::count_open_for_good(uint32_t index) {
  const RingHeader& shared = arena_.ring(index);
  if (shared.session.load(std::memory_order_acquire) != settings_.generation) {
    return;
  }
  for (const OpenSlot& slot : shared.open) {
    const uint64_t id = slot.id.load(std::memory_order_acquire);
    // begin_finish() has listed some already.
    lost_.unfinished += id != 0 && open_.count(id) == 0 ? 1 : 0;
  }
  lost_.unfinished +=
      finishing_ ? 0 : shared.open_beyond.load(std::memory_order_relaxed);
}

}  // namespace shp
