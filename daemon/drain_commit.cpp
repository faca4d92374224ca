// The lasting side of Drain: commits, and taking up where a commit left off
// (arena_abi.h, DURABILITY). Every store that another daemon may have to go on
// from is a release, so that none is ordered before what it stands for.
#include <algorithm>

#include "daemon/drain.h"
#include "daemon/drain_ring.h"
#include "daemon/futex.h"

namespace shp {

SessionMark& Drain::mark() const {
  return *reinterpret_cast<SessionMark*>(arena_.daemon_area());
}

// ---- the beginning ----------------------------------------------------------

// The arena's counters run on from session to session.
void Drain::note_baseline() {
  const ArenaHeader& header = arena_.header();
  SessionMark& mark = this->mark();
  mark.generation.store(0, std::memory_order_release);
  mark.no_ring = header.lost_no_ring.load(std::memory_order_relaxed);
  mark.bad_name = header.lost_bad_name.load(std::memory_order_relaxed);
  mark.bad_args = header.bad_args.load(std::memory_order_relaxed);
  mark.names_lost = header.names_lost.load(std::memory_order_relaxed);
  mark.lost_marks = header.lost_marks.load(std::memory_order_relaxed);
  mark.clock_shift_ns = settings_.clock_shift_ns;
  const uint32_t count = arena_.rings_in_use();
  for (uint32_t i = 0; i < count; ++i) {
    if (ring_at(i).exists) {
      note_ring_baseline(i);
    }
  }
  mark.generation.store(settings_.generation, std::memory_order_release);
}

void Drain::note_ring_baseline(uint32_t index) {
  RingHeader& shared = arena_.ring(index);
  shared.overflow_base = shared.overflow.load(std::memory_order_relaxed);
  shared.reentrant_base = shared.reentrant.load(std::memory_order_relaxed);
  shared.lost_marks_base = shared.lost_marks.load(std::memory_order_relaxed);
  // A ring that broke a rule in an earlier session gets another chance.
  std::atomic<uint32_t>& session = shared.drained_session[commit_index_];
  if (session.load(std::memory_order_relaxed) == kRingBroken) {
    session.store(0, std::memory_order_release);
  }
  even_halves(shared);
}

// The first commit makes the older half count, and we do not know what the last
// commit of the daemon before us changed.
void Drain::even_halves(RingHeader& ring) const {
  const uint32_t other = commit_index_ ^ 1;
  ring.drained[other].store(
      ring.drained[commit_index_].load(std::memory_order_relaxed),
      std::memory_order_release);
  ring.drained_session[other].store(
      ring.drained_session[commit_index_].load(std::memory_order_relaxed),
      std::memory_order_release);
}

void Drain::begin() {
  mend_blocks();
  finish_freeing();
  note_baseline();
  base_.no_ring = mark().no_ring;
  base_.bad_name = mark().bad_name;
  bad_args_base_ = mark().bad_args;
  names_lost_base_ = mark().names_lost;
  lost_marks_base_ = mark().lost_marks;
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (rings_[i].exists) {
      const RingHeader& shared = arena_.ring(static_cast<uint32_t>(i));
      rings_[i].overflow_base = shared.overflow_base;
      rings_[i].reentrant_base = shared.reentrant_base;
      rings_[i].lost_marks_base = shared.lost_marks_base;
    }
  }
}

std::optional<Drain::Committed> Drain::committed(const ArenaView& arena,
                                                 uint32_t generation) {
  const ArenaHeader& header = arena.header();
  const auto& mark = *reinterpret_cast<const SessionMark*>(arena.daemon_area());
  const uint32_t index =
      header.commit_index.load(std::memory_order_acquire) & 1;
  if (mark.generation.load(std::memory_order_acquire) != generation ||
      mark.half[index].generation != generation) {
    return std::nullopt;
  }
  const CommitRecord& half = header.commit[index];
  return Committed{half.file_bytes,
                   half.written_spans,
                   mark.half[index].sequence,
                   mark.clock_shift_ns};
}

void Drain::take_up(const Committed& from) {
  mend_blocks();
  finish_freeing();
  const CommitRecord half = arena_.header().commit[commit_index_];
  lost_.outside = half.outside;
  lost_.unfinished = half.unfinished;
  lost_.bad_name = half.bad_name;
  bad_args_ = half.bad_args;
  broken_rings_ = half.broken_rings;
  lost_marks_ = half.lost_marks;
  sequence_ = from.sequence;
  writer_.go_on_after(
      half.written_spans, half.written_instants, half.written_counters);
  base_.no_ring = mark().no_ring;
  base_.bad_name = mark().bad_name;
  bad_args_base_ = mark().bad_args;
  names_lost_base_ = mark().names_lost;
  lost_marks_base_ = mark().lost_marks;
  latest_end_ = mark().half[commit_index_].latest_end_ticks;
  last_clock_ = mark().half[commit_index_].clock;
  clock_.add(last_clock_);
  const uint32_t count = arena_.rings_in_use();
  for (uint32_t i = 0; i < count; ++i) {
    if (Ring& ring = ring_at(i); ring.exists) {
      even_halves(arena_.ring(i));
      ring.overflow_base = arena_.ring(i).overflow_base;
      ring.reentrant_base = arena_.ring(i).reentrant_base;
      ring.lost_marks_base = arena_.ring(i).lost_marks_base;
    }
  }
}

// Blocks that were marked left: by a commit that came to pass they are behind
// the ring's position, by one that did not they are the ring's still.
void Drain::mend_blocks() {
  const uint32_t count = arena_.rings_in_use();
  std::vector<uint32_t> sequence_of(count);
  std::vector<bool> known(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (!ring_at(i).exists) {
      continue;
    }
    const RingHeader& shared = arena_.ring(i);
    const uint64_t position =
        shared.drained[commit_index_].load(std::memory_order_relaxed);
    const uint32_t block =
        position != 0 ? position_block(position)
                      : shared.first_block.load(std::memory_order_relaxed);
    BlockHeader header;
    known[i] = shared.state.load(std::memory_order_acquire) != kFree &&
               block < arena_.block_count() && arena_.owns(i, block) &&
               arena_.read_block(block, 0, &header, sizeof(header));
    sequence_of[i] = known[i] ? header.sequence : 0;
  }
  arena_.mend_blocks_left(sequence_of, known);
}

// Rings whose freeing an earlier daemon died over; after their blocks, which a
// free ring no longer tells from another's.
void Drain::finish_freeing() {
  const uint32_t count = arena_.rings_in_use();
  for (uint32_t i = 0; i < count; ++i) {
    if (!ring_at(i).exists) {
      continue;
    }
    const RingHeader& shared = arena_.ring(i);
    const bool done = shared.drained_session[commit_index_].load(
                          std::memory_order_relaxed) == kRingDone;
    if (shared.state.load(std::memory_order_acquire) == kReleased &&
        (done || shared.tail.load(std::memory_order_acquire) == 0)) {
      free_ring(i,
                position_block(shared.drained[commit_index_].load(
                    std::memory_order_relaxed)));
    }
  }
}

// ---- commits ----------------------------------------------------------------

uint32_t Drain::session_mark_of(const Ring& ring) const {
  return ring.reader.broken() ? kRingBroken
         : ring.drained_whole ? kRingDone
                              : ring.session;
}

void Drain::commit(uint64_t file_bytes) {
  ArenaHeader& header = arena_.header();
  const uint32_t other = commit_index_ ^ 1;
  // The other half is one commit behind: it needs the changes of both.
  for (const auto* list : {&changed_before_, &changed_}) {
    for (const uint32_t index : *list) {
      RingHeader& shared = arena_.ring(index);
      const Ring& ring = rings_[index];
      shared.drained[other].store(ring.reader.safe_position(),
                                  std::memory_order_relaxed);
      shared.drained_session[other].store(session_mark_of(ring),
                                          std::memory_order_relaxed);
      ring.reader.each_left_block(
          [&](uint32_t block) { arena_.mark_left(index, block); });
    }
  }
  header.commit[other] = {file_bytes,
                          writer_.spans(),
                          writer_.instants(),
                          writer_.counters(),
                          lost_.outside,
                          lost_.unfinished,
                          lost_.bad_name,
                          bad_args_,
                          broken_rings_,
                          lost_marks_,
                          {}};
  mark().half[other] = {
      settings_.generation, ++sequence_, latest_end_, last_clock_};
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
      free_ring(index, ring.reader.current_block());
      ring.forget_claim();
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

// Its thread has gone, and all it left is in the file or counted. May be done
// again from the start at any point.
void Drain::free_ring(uint32_t index, uint32_t block) {
  RingHeader& shared = arena_.ring(index);
  if (block < arena_.block_count() &&
      shared.tail.load(std::memory_order_relaxed) != 0) {
    arena_.free_block(index, block);
  }
  for (OpenSlot& slot : shared.open) {
    slot.id.store(0, std::memory_order_relaxed);
  }
  shared.open_beyond.store(0, std::memory_order_relaxed);
  shared.tail.store(0, std::memory_order_release);
  for (int half = 0; half < 2; ++half) {
    shared.drained[half].store(0, std::memory_order_release);
    shared.drained_session[half].store(0, std::memory_order_release);
  }
  shared.state.store(kFree, std::memory_order_release);
}

}  // namespace shp
