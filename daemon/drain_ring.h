// What Drain keeps of each ring, and how it answers RingReader. Private to
// drain*.cpp.
#pragma once

#include "daemon/drain.h"

namespace shp {

struct Drain::Ring {
  explicit Ring(uint32_t index) : reader(index) {}

  // What belongs to one thread's claim of the ring.
  void forget_claim() {
    reader.close();
    identified = false;
    in_session = false;
    has_lines = false;
    drained_whole = false;
    session = 0;
  }

  RingReader<ArenaView> reader;
  bool exists = false;         // its page is populated
  bool identified = false;     // tid, name and text are this claim's
  bool in_session = false;     // behind the kSession record of our session
  bool has_lines = false;      // a line of this claim is in the file
  bool drained_whole = false;  // released, and nothing more to come
  uint32_t session = 0;        // of the last kSession record that was read
  uint32_t tid = 0;
  char name[16] = {};
  ThreadText text;
  uint64_t overflow_base = 0;
  uint64_t reentrant_base = 0;
  uint64_t lost_marks_base = 0;
};

struct Drain::Visitor {
  Drain& drain;
  Ring& ring;

  void session(uint32_t generation) {
    ring.session = generation;
    ring.in_session = generation == drain.settings_.generation;
  }
  void span(const Record& record) {
    if (ring.in_session) [[likely]] {
      drain.write_plain(ring, record);
    }
  }
  void span(const Record& record, const RecordArgs& args) {
    if (ring.in_session) {
      drain.write_with_args(ring, record, args);
    }
  }
  void mark(const Record& record, const RecordArgs& args) {
    if (ring.in_session) {
      drain.write_mark(ring, record, args);
    }
  }
  void deferred(const Record& record, const RecordArgs& args) {
    if (ring.in_session) {
      drain.resolve(record, args);
    }
  }
};

}  // namespace shp
