// Drain: one session's way from records in an arena to span lines, ring by
// ring. Lives on the session's thread, as long as the session.
//
//   round()   what all rings hold now → lines in the LineWriter
//   commit()  once the lines are in the file: positions for good, blocks back
//             to the pool, finished threads' rings free again (arena_abi.h,
//             DURABILITY and RING STATE)
//
// A session that another daemon began is gone on with from its last commit.
//
// Counts every span that it does not write. A ring of the arena may hold
// records of an earlier session (before kSession) which are nobody's now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/tick_clock.h"
#include "common/jsonl/line_writer.h"
#include "common/shm/arena_view.h"
#include "common/shm/name_reader.h"
#include "common/shm/ring_reader.h"
#include "daemon/deferred_spool.h"
#include "daemon/session_mark.h"

namespace shp {

class Drain {
 public:
  struct Settings {
    uint32_t generation;
    int64_t pid;        // as it stands in span lines
    ClockSample start;  // the client's
    int64_t clock_shift_ns = 0;
  };

  Drain(const ArenaView& arena,
        LineWriter& writer,
        DeferredSpool& spool,
        const Settings& settings);
  ~Drain();
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Turns what came since the last round into lines. `now` must have been taken
  // after see_tails(), in the client's clock.
  void see_tails();
  void round(const ClockSample& now);
  bool anything_seen() const { return !seen_.empty(); }
  // Whether the last round left records behind, so as to be fair to the others.
  bool has_more() const { return has_more_; }
  // Bytes of records in the last round.
  size_t last_bytes() const { return last_bytes_; }

  void commit(uint64_t file_bytes);

  // Before the first round, instead of beginning anew: takes up what the last
  // commit of the session says. Nothing when there is none, or when it is not
  // of this session: then the file begins anew too.
  struct Committed {
    uint64_t file_bytes;
    uint64_t written_spans;
    uint32_t sequence;
    int64_t clock_shift_ns;
  };
  [[nodiscard]] static std::optional<Committed> committed(
      const ArenaView& arena, uint32_t generation);
  void take_up(const Committed& from);
  // Begins anew. One of the two is called, once, before anything else.
  void begin();

  // ---- the end -------------------------------------------------------------
  // begin_finish(), see_tails(), round(), end_finish(). The session's gate is
  // closed or its process gone: `stop` bounds what is accepted from here on,
  // and spans that are open now and do not end in that round are unfinished.
  void begin_finish(const ClockSample& stop);
  void end_finish();
  // The unfinished spans, longest open first. After end_finish().
  std::vector<OpenSpanEntry> open_spans();
  // A "thread" line for every thread that still has a ring.
  void write_threads();

  Losses losses() const;
  uint64_t bad_args() const;
  uint64_t names_lost() const;
  uint64_t dropped_marks() const;
  uint32_t sequence() const { return sequence_; }  // of the last commit
  uint64_t broken_rings() const { return broken_rings_; }
  int64_t to_ns(uint64_t ticks) const { return clock_.to_ns(ticks); }
  // Ticks of the latest end that was written.
  uint64_t latest_end_ticks() const { return latest_end_; }

 private:
  struct Ring;
  struct Visitor;
  struct Open {
    uint32_t tid;
    uint32_t name;
    uint64_t start_ticks;
  };
  struct Seen {
    uint32_t ring;
    uint64_t tail;
    bool released;
  };

  void note_baseline();
  void note_ring_baseline(uint32_t index);
  void even_halves(RingHeader& ring) const;
  void finish_freeing();
  void mend_blocks();
  void open_reader(uint32_t index, Ring& ring);
  uint32_t session_mark_of(const Ring& ring) const;
  SessionMark& mark() const;
  Ring& ring_at(uint32_t index);
  bool look_at(uint32_t index, Seen* seen);
  void identify(uint32_t index, Ring& ring);
  void read_ring(const Seen& seen);
  void end_ring(uint32_t index, Ring& ring);
  void free_ring(uint32_t index, uint32_t block);
  void count_open_for_good(uint32_t index);
  void note_open_slots();
  void note_open_slots_of(uint32_t index);
  bool accept(const Record& record, SpanTimes* times);
  void write_plain(Ring& ring, const Record& record);
  void write_with_args(Ring& ring,
                       const Record& record,
                       const RecordArgs& args);
  void write_mark(Ring& ring, const Record& record, const RecordArgs& args);
  void resolve(const Record& record, const RecordArgs& args);
  void write_resolved(const DeferredSpool::Entry& entry,
                      std::string_view args,
                      bool good);
  void ended_after_all(const Record& record);
  void keep_early(const RecordArgs& args, bool good);
  int64_t ns_of(uint64_t ticks) const;

  // Deferred args that were read before their span: the two are in different
  // threads' rings, which are read one after the other.
  struct Early {
    std::string text;
    bool good;
  };
  static constexpr size_t kMaxEarlyBytes = 16U << 20;

  const ArenaView& arena_;
  LineWriter& writer_;
  DeferredSpool& spool_;
  Settings settings_;
  NameReader names_;
  TickClock clock_;
  std::vector<Ring> rings_;
  std::vector<Seen> seen_;
  std::vector<uint32_t> changed_;         // since the last commit
  std::vector<uint32_t> changed_before_;  // in the commit before that
  std::vector<std::byte> scratch_;
  uint32_t commit_index_;
  uint32_t sequence_ = 0;  // of the last commit
  ClockSample last_clock_;
  size_t last_bytes_ = 0;
  bool has_more_ = false;

  uint64_t first_ticks_;
  uint64_t last_ticks_;
  int64_t first_ns_;
  int64_t last_ns_;
  uint64_t latest_end_ = 0;
  bool finishing_ = false;
  // No arena holds more records than bytes, whatever its chains say.
  size_t finish_budget_ = 0;
  std::unordered_map<uint64_t, Open> open_;
  std::unordered_map<uint64_t, Early> early_;  // by key
  size_t early_bytes_ = 0;
  uint64_t open_beyond_ = 0;

  Losses lost_;  // what the daemon itself counts
  Losses base_;  // the arena's counters at the session's start
  uint64_t bad_args_ = 0;
  uint64_t bad_args_base_ = 0;
  uint64_t names_lost_base_ = 0;
  uint64_t lost_marks_ = 0;
  uint64_t lost_marks_base_ = 0;
  uint64_t broken_rings_ = 0;
};

}  // namespace shp
