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
      last_ns_(settings.start.monotonic_ns) {
  take_baseline();
}

Drain::~Drain() = default;

// The arena's counters run on from session to session.
void Drain::take_baseline() {
  const ArenaHeader& header = arena_.header();
  base_.no_ring = header.lost_no_ring.load(std::memory_order_relaxed);
  base_.bad_name = header.lost_bad_name.load(std::memory_order_relaxed);
  bad_args_base_ = header.bad_args.load(std::memory_order_relaxed);
  lost_marks_base_ = header.lost_marks.load(std::memory_order_relaxed);
  names_lost_base_ = header.names_lost.load(std::memory_order_relaxed);
  const uint32_t count = arena_.rings_in_use();
  for (uint32_t i = 0; i < count; ++i) {
    Ring& ring = ring_at(i);
    if (ring.exists) {
      const RingHeader& shared = arena_.ring(i);
      ring.overflow_base = shared.overflow.load(std::memory_order_relaxed);
      ring.reentrant_base = shared.reentrant.load(std::memory_order_relaxed);
      ring.lost_marks_base = shared.lost_marks.load(std::memory_order_relaxed);
    }
  }
}

Drain::Ring& Drain::ring_at(uint32_t index) {
  while (rings_.size() <= index) {
    const auto next = static_cast<uint32_t>(rings_.size());
    rings_.emplace_back(next);
    rings_.back().exists = arena_.ring_exists(next);
  }
  return rings_[index];
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
  if (!ring.exists || ring.reader.broken()) {
    return false;
  }
  RingHeader& shared = arena_.ring(index);
  const uint32_t state = shared.state.load(std::memory_order_acquire);
  const uint64_t tail = shared.tail.load(std::memory_order_acquire);
  if (state == kFree || tail == 0) {
    return false;
  }
  if (!ring.reader.opened()) {
    ring.reader.open(
        shared.drained[commit_index_].load(std::memory_order_relaxed),
        shared.first_block.load(std::memory_order_relaxed));
  }
  // A reader that was just opened counts as behind: its first round writes its
  // position into the commit half that an earlier session may have left old.
  *seen = {index, tail, state == kReleased};
  return seen->released || !ring.reader.at(tail);
}

void Drain::round(const ClockSample& now) {
  clock_.add(now);
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
  ring.drained_whole = seen.released && state == ReadState::kCaughtUp;
  if (ring.drained_whole) {
    ring.reader.give_up_pieces();
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

void Drain::commit(uint64_t file_bytes) {
  ArenaHeader& header = arena_.header();
  const uint32_t other = commit_index_ ^ 1;
  // The other half is one commit behind: it needs the changes of both.
  for (const auto* list : {&changed_before_, &changed_}) {
    for (const uint32_t index : *list) {
      arena_.ring(index).drained[other].store(
          rings_[index].reader.safe_position(), std::memory_order_relaxed);
    }
  }
  CommitRecord& half = header.commit[other];
  half.file_bytes = file_bytes;
  half.written_spans = writer_.spans();
  half.next_id = writer_.spans() + 1;
  half.written_instants = writer_.instants();
  half.written_counters = writer_.counters();
  header.commit_index.store(other, std::memory_order_release);
  commit_index_ = other;

  bool freed = false;
  for (const uint32_t index : changed_) {
    Ring& ring = rings_[index];
    ring.reader.take_left_blocks([&](uint32_t block) {
      arena_.free_block(index, block);
      freed = true;
    });
    if (ring.drained_whole) {
      free_ring(index, ring);
      freed = true;
    }
  }
  changed_before_.swap(changed_);
  changed_.clear();
  if (freed) {
    header.room.fetch_add(1, std::memory_order_release);
    if (header.room_waiters.load(std::memory_order_relaxed) != 0) {
      futex_wake_all(&header.room);
    }
  }
}

// A thread has gone and all it left is in the file.
void Drain::free_ring(uint32_t index, Ring& ring) {
  RingHeader& shared = arena_.ring(index);
  count_open_for_good(index);
  if (ring.identified && ring.has_lines) {
    writer_.thread(ring.tid, ring.name);
  }
  arena_.free_block(index, ring.reader.current_block());
  ring.forget_claim();
  shared.drained[0].store(0, std::memory_order_relaxed);
  shared.drained[1].store(0, std::memory_order_relaxed);
  shared.tail.store(0, std::memory_order_relaxed);
  shared.state.store(kFree, std::memory_order_release);
}

void Drain::count_open_for_good(uint32_t index) {
  RingHeader& shared = arena_.ring(index);
  const bool ours =
      shared.session.load(std::memory_order_acquire) == settings_.generation;
  for (OpenSlot& slot : shared.open) {
    const uint64_t id = slot.id.load(std::memory_order_acquire);
    if (id != 0) {
      // finish() has listed it already.
      lost_.unfinished += ours && open_.count(id) == 0 ? 1 : 0;
      slot.id.store(0, std::memory_order_relaxed);
    }
  }
  const uint32_t beyond = shared.open_beyond.load(std::memory_order_relaxed);
  lost_.unfinished += ours && !finishing_ ? beyond : 0;
  shared.open_beyond.store(0, std::memory_order_relaxed);
}

}  // namespace shp
