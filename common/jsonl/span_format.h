// The closed host file, schema_version 3: JSON Lines, UTF-8, "\n" line ends.
// line_writer.* writes it (shpd), line_reader.* reads it (shp); this page is
// the specification of both.
//
// PUBLICATION. A file with its final name (*.jsonl) is whole and never changes.
// While it is written it is called NAME.jsonl.pending.
//
// LINE 1, metadata. One object, padded with spaces before its "\n" so that the
// writer can fill it in when everything else is on disk. Keys:
//   type                  "metadata"
//   schema_version        3
//   session_id            string, not empty
//   pid                   of the process, in its own pid namespace
//   hostname              string
//   clock                 "monotonic": all *_ns of spans are CLOCK_MONOTONIC
//   start_monotonic_ns    lower bound of the start calibration's bracket
//   start_realtime_ns     CLOCK_REALTIME at the middle of that bracket
//   clock_uncertainty_ns  whole width of that bracket
//   written_spans         number of span lines
//   dropped_spans         spans started and not written: sum of `dropped`
//   stop_monotonic_ns     upper bound of the stop calibration's bracket
//   stop_realtime_ns      CLOCK_REALTIME at the middle of that bracket
//   complete              true only after an orderly end
// and, added by this project (readers ignore what they do not know):
//   writer                "shp VERSION"
//   start_monotonic_raw_ns, stop_monotonic_raw_ns   at the middle of the
//                         brackets, as the two *_realtime_ns are
//   start_ticks           counter at the end of the start bracket, which is
//                         start_monotonic_ns + clock_uncertainty_ns
//   stop_ticks            counter at stop_monotonic_ns
//   clock_kind            "monotonic", "tsc", "cntvct": what ticks count
//   written_instants,     numbers of lines of these two types (absent from
//   written_counters      files that hold none)
//   dropped_marks         instants and counter values that were not written
//   dropped               {"unfinished","overflow","outside","bad_name",
//                          "reentrant","no_ring"}: each a count
//   bad_args              spans written with args {} since theirs were bad
//   broken_rings          threads whose ring broke a rule; what it still held
//                         is in no count (absent when there is none)
//   names_lost            spans named "(too many names)"
//   end_reason            "stop","exit","exec","killed","daemon_stopped"
//   exit_code | exit_signal   of the process, where the kernel told
//   argv                  array of strings;  ppid, host_pid, uid numbers
//   pid_namespace         inode number of the pid namespace
//   boot_id               of the kernel, string
//   open_spans            spans that were open at the end, as many as fit the
//                         line: [{"tid","name","start_ns"}]; all of them, and
//                         these too, are lines of type "open_span"
//
// SPAN LINES, keys in this order:
//   {"type":"span","id":1,"pid":7,"tid":7,"name":"step","start_ns":10,
//    "duration_ns":5,"args":{}}
//   id counts 1, 2, 3 … in the file. start_ns and start_ns+duration_ns lie in
//   [start_monotonic_ns, stop_monotonic_ns]. args is an object, {} for none.
//
// OTHER LINES, after the spans they concern or at the end; readers skip types
// that they do not know:
//   {"type":"thread","tid":7,"name":"worker"}
//   {"type":"clock","monotonic_ns":…,"realtime_ns":…,"monotonic_raw_ns":…,
//    "ticks":…,"uncertainty_ns":…}      a calibration; at least the session's
//                                       first and last, one a second between
//                                       (thinned out in long sessions)
//   {"type":"open_span","tid":7,"name":"step","start_ns":10}
//   {"type":"instant","pid":7,"tid":7,"name":"oom","time_ns":10,"args":{}}
//                                       a mark; args as a span's
//   {"type":"counter","pid":7,"tid":7,"name":"queue","time_ns":10,
//    "args":{"value":3}}                a value from here on, process-wide;
//                                       args hold numbers only, one a series
//   The last two lie within the session and are as many as line 1 says.
//
// SOURCE. The first 14 keys and the span line are the format of the predecessor
// (service-host-profiling 0.5.0), byte for byte compatible for its readers.
#pragma once

#include <cstdint>
#include <string_view>

namespace shp {

inline constexpr int kSchemaVersion = 3;

// Bytes reserved for line 1, its "\n" included.
inline constexpr uint32_t kMetadataLineBytes = 8192;

inline constexpr std::string_view kHostFileSuffix = ".jsonl";
inline constexpr std::string_view kPendingSuffix = ".pending";

// Longest line that a reader accepts: 1 MiB of args, its escapes and the rest.
inline constexpr uint64_t kMaxLineBytes = 16U << 20;

}  // namespace shp
