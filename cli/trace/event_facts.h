// What one event adds to a TraceScan: process, thread, labels, time window.
//
// For scan.cpp; one object a scan.
#pragma once

#include <string>

#include "cli/trace/event_fields.h"
#include "cli/trace/scan.h"

namespace shp {

class EventFacts {
 public:
  explicit EventFacts(TraceScan& scan) : scan_(scan) {}

  // False when the trace has more processes or threads than any real one.
  bool take(const EventFields& fields);

 private:
  static constexpr size_t kMaxProcesses = 65536;
  static constexpr size_t kMaxThreads = 1U << 20;

  TraceProcess* process_of(std::string_view token);
  TraceThread* thread_of(TraceProcess& process, std::string_view token);
  void take_metadata(const EventFields& fields,
                     TraceProcess& process,
                     TraceThread* thread);
  void take_time(const EventFields& fields, TraceProcess& process);
  void take_mark(const EventFields& fields, int64_t at_ns);

  TraceScan& scan_;
  size_t last_process_ = 0;
  size_t threads_ = 0;
  // Neighbouring events mostly share their thread.
  TraceProcess* cached_process_ = nullptr;
  TraceThread* cached_thread_ = nullptr;
  std::string cached_tid_;
};

}  // namespace shp
