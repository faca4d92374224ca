// The span side of Drain: which records become lines, and what the end makes of
// the spans that have none.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "daemon/drain.h"
#include "daemon/drain_ring.h"

namespace shp {
namespace {

uint64_t since(uint64_t now, uint64_t base) {
  return now >= base ? now - base : now;
}

bool is_beyond_slots(uint64_t id) {
  return (id & 0xffff) >= kOpenSlots;
}

}  // namespace

int64_t Drain::ns_of(uint64_t ticks) const {
  return std::clamp(clock_.to_ns(ticks), first_ns_, last_ns_);
}

// Judged in ticks, since the conversion to ns has an error and the order of two
// readings of one counter has none.
bool Drain::accept(const Record& record, SpanTimes* times) {
  if (finishing_) [[unlikely]] {
    ended_after_all(record);
  }
  if (record.start_ticks < first_ticks_ || record.end_ticks > last_ticks_ ||
      record.end_ticks < record.start_ticks) [[unlikely]] {
    ++lost_.outside;
    return false;
  }
  times->start_ns = ns_of(record.start_ticks);
  times->duration_ns = ns_of(record.end_ticks) - times->start_ns;
  latest_end_ = std::max(latest_end_, record.end_ticks);
  return true;
}

void Drain::write_plain(Ring& ring, const Record& record) {
  SpanTimes times;
  if (!accept(record, &times)) {
    return;
  }
  const std::string_view name = names_.text(record.name);
  if (name.empty()) [[unlikely]] {
    ++lost_.bad_name;
    return;
  }
  writer_.span(ring.text, name, times);
  ring.has_lines = true;
}

void Drain::write_with_args(Ring& ring,
                            const Record& record,
                            const RecordArgs& args) {
  SpanTimes times;
  if (!accept(record, &times)) {
    return;
  }
  const std::string_view name = names_.text(record.name);
  if (name.empty()) {
    ++lost_.bad_name;
    return;
  }
  ring.has_lines = true;
  if ((record.flags & kHasDeferred) != 0 && args.good &&
      spool_.put(
          args.key,
          {times.start_ns, times.duration_ns, record.name, ring.tid, 0, 0})) {
    DeferredSpool::Entry entry;
    const auto early = early_.extract(args.key);
    if (!early.empty() && spool_.take(args.key, &entry)) {
      write_resolved(entry, early.mapped().text, early.mapped().good);
    }
    return;
  }
  if (args.has_text && args.good) {
    bad_args_ += writer_.span(ring.text, name, times, args.text) ? 0 : 1;
    return;
  }
  const bool bad =
      !args.good || (record.flags & (kBadArgs | kHasDeferred)) != 0;
  bad_args_ += bad ? 1 : 0;
  writer_.span(ring.text, name, times);
}

void Drain::write_mark(Ring& ring,
                       const Record& record,
                       const RecordArgs& args) {
  const std::string_view name = names_.text(record.name);
  const double value = std::bit_cast<double>(record.end_ticks);
  const bool counter = record.kind == kCounter;
  if (record.start_ticks < first_ticks_ || record.start_ticks > last_ticks_ ||
      name.empty() || (counter && !std::isfinite(value))) {
    ++lost_marks_;
    return;
  }
  const int64_t time_ns = ns_of(record.start_ticks);
  ring.has_lines = true;
  if (counter) {
    writer_.counter(ring.text, name, time_ns, value);
    return;
  }
  const bool readable = args.good && (record.flags & kBadArgs) == 0;
  const bool written = writer_.instant(
      ring.text, name, time_ns, readable ? args.text : std::string_view());
  bad_args_ += readable && written ? 0 : 1;
}

void Drain::resolve(const Record& record, const RecordArgs& args) {
  DeferredSpool::Entry entry;
  const bool good = args.has_text && (record.flags & kBadArgs) == 0;
  if (args.good && spool_.take(args.key, &entry)) {
    write_resolved(entry, args.text, good);
  } else if (args.good) {
    keep_early(args, good);
  }
}

// Bounded over the whole session: a client may send args for no span at all.
void Drain::keep_early(const RecordArgs& args, bool good) {
  early_bytes_ += sizeof(Early) + args.text.size();
  if (early_bytes_ <= kMaxEarlyBytes) {
    early_.try_emplace(args.key, Early{std::string(args.text), good});
  }
}

void Drain::write_resolved(const DeferredSpool::Entry& entry,
                           std::string_view args,
                           bool good) {
  const std::string_view name = names_.text(entry.name);
  if (name.empty()) {
    ++lost_.bad_name;
    return;
  }
  const ThreadText thread = span_thread_text(settings_.pid, entry.tid);
  const SpanTimes times{entry.start_ns, entry.duration_ns};
  if (!good) {
    ++bad_args_;
    writer_.span(thread, name, times);
    return;
  }
  bad_args_ += writer_.span(thread, name, times, args) ? 0 : 1;
}

// ---- the end
// ------------------------------------------------------------------

void Drain::begin_finish(const ClockSample& stop) {
  note_open_slots();
  finishing_ = true;
  finish_budget_ = arena_.geometry().arena_bytes;
  clock_.add(stop);
  last_ticks_ = stop.ticks + stop.tick_window;
  last_ns_ = stop.monotonic_ns;
}

void Drain::end_finish() {
  spool_.take_rest([this](const DeferredSpool::Entry& entry) {
    write_resolved(entry, {}, false);
  });
  // What could not be read back from the spool is gone.
  lost_.overflow += spool_.waiting();
  lost_.unfinished += open_.size() + open_beyond_;
}

// Before the last tails are read: a span that ends from here on is drained
// (and leaves the set again), or it counts as unfinished. Never both, never
// neither.
void Drain::note_open_slots() {
  const uint32_t count = arena_.rings_in_use();
  for (uint32_t i = 0; i < count; ++i) {
    if (!ring_at(i).exists) {
      continue;
    }
    const RingHeader& shared = arena_.ring(i);
    if (shared.state.load(std::memory_order_acquire) == kFree ||
        shared.session.load(std::memory_order_acquire) !=
            settings_.generation) {
      continue;
    }
    note_open_slots_of(i);
  }
}

void Drain::note_open_slots_of(uint32_t index) {
  const RingHeader& shared = arena_.ring(index);
  const uint32_t tid = shared.tid.load(std::memory_order_relaxed);
  for (const OpenSlot& slot : shared.open) {
    const uint64_t id = slot.id.load(std::memory_order_acquire);
    const Open open{tid, slot.name, slot.start_ticks};
    if (id != 0 && slot.id.load(std::memory_order_acquire) == id) {
      open_.emplace(id, open);
    }
  }
  open_beyond_ += shared.open_beyond.load(std::memory_order_relaxed);
}

void Drain::ended_after_all(const Record& record) {
  if (open_.erase(record.id) == 0 && is_beyond_slots(record.id) &&
      open_beyond_ > 0) {
    --open_beyond_;
  }
}

std::vector<OpenSpanEntry> Drain::open_spans() {
  std::vector<OpenSpanEntry> spans;
  for (const auto& [id, open] : open_) {
    spans.push_back({open.tid,
                     std::string(names_.text(open.name)),
                     ns_of(open.start_ticks)});
  }
  std::sort(spans.begin(),
            spans.end(),
            [](const OpenSpanEntry& a, const OpenSpanEntry& b) {
              return a.start_ns < b.start_ns;
            });
  std::erase_if(
      spans, [](const OpenSpanEntry& span) { return span.name_text.empty(); });
  return spans;
}

void Drain::write_threads() {
  for (Ring& ring : rings_) {
    if (ring.identified && ring.has_lines) {
      writer_.thread(ring.tid, ring.name);
      ring.has_lines = false;
    }
  }
}

Losses Drain::losses() const {
  Losses losses = lost_;
  const ArenaHeader& header = arena_.header();
  losses.no_ring +=
      since(header.lost_no_ring.load(std::memory_order_relaxed), base_.no_ring);
  losses.bad_name += since(header.lost_bad_name.load(std::memory_order_relaxed),
                           base_.bad_name);
  for (size_t i = 0; i < rings_.size(); ++i) {
    const Ring& ring = rings_[i];
    if (ring.exists) {
      const RingHeader& shared = arena_.ring(static_cast<uint32_t>(i));
      losses.overflow += since(shared.overflow.load(std::memory_order_relaxed),
                               ring.overflow_base);
      losses.reentrant +=
          since(shared.reentrant.load(std::memory_order_relaxed),
                ring.reentrant_base);
    }
  }
  return losses;
}

uint64_t Drain::bad_args() const {
  return bad_args_ +
         since(arena_.header().bad_args.load(std::memory_order_relaxed),
               bad_args_base_);
}

uint64_t Drain::dropped_marks() const {
  uint64_t marks =
      lost_marks_ +
      since(arena_.header().lost_marks.load(std::memory_order_relaxed),
            lost_marks_base_);
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (rings_[i].exists) {
      marks += since(arena_.ring(static_cast<uint32_t>(i))
                         .lost_marks.load(std::memory_order_relaxed),
                     rings_[i].lost_marks_base);
    }
  }
  return marks;
}

uint64_t Drain::names_lost() const {
  return since(arena_.header().names_lost.load(std::memory_order_relaxed),
               names_lost_base_);
}

}  // namespace shp
