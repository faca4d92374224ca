// Splicing into a gzip file: the compressed bytes up to a block boundary before
// the change are copied, the rest is compressed again.
//
//   | kept blocks, bit for bit | A: [X, S) | B: from the change S to the end |
//                              X           S: byte aligned, a block starts
//
// The bytes before S do not change. Since A ends in an empty stored block, a
// later run finds a block boundary exactly at S, keeps all before it, and makes
// B from the same text: its result is the same, byte for byte. Later members of
// the file become part of B's.
#pragma once

#include <functional>

#include "cli/trace/splice.h"

namespace shp {

Status splice_gz(int in,
                 const ScannedTrace& trace,
                 SpliceOutput out,
                 const WriteEvents& write_events);

// What both kinds of splice share (splice.cpp): bytes of a file as they are,
// and the parts of `range` that are not our earlier events.
Status copy_bytes(int in, int out, uint64_t begin, uint64_t end);
Status for_kept_bytes(const TraceScan& scan,
                      ByteRange range,
                      const std::function<Status(ByteRange)>& take);

}  // namespace shp
