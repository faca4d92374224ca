// RecordArgs: what a record's payload holds (arena_abi.h, RecordFlag), taken
// apart without trusting a count in it. Pure; used by RingReader.
#pragma once

#include <cstring>
#include <string_view>

#include "common/shm/arena_abi.h"

namespace shp {

struct RecordArgs {
  bool good = true;       // the payload was as its flags say
  bool has_text = false;  // with kHasArgs or kHasParts
  uint64_t key = 0;       // kHasDeferred's and kDeferred's
  std::string_view text;  // JSON object text, unchecked
};

// Takes a u32 count and that many bytes off the front of `payload`.
inline bool take_counted(std::string_view* payload, std::string_view* out) {
  uint32_t count = 0;
  if (payload->size() < sizeof(count)) {
    return false;
  }
  std::memcpy(&count, payload->data(), sizeof(count));
  if (count > payload->size() - sizeof(count)) {
    return false;
  }
  *out = payload->substr(sizeof(count), count);
  payload->remove_prefix(sizeof(count) + count);
  return true;
}

inline RecordArgs unpack_args(const Record& record, std::string_view payload) {
  RecordArgs args;
  if (record.kind == kDeferred || (record.flags & kHasDeferred) != 0) {
    if (payload.size() < sizeof(args.key)) {
      args.good = false;
      return args;
    }
    std::memcpy(&args.key, payload.data(), sizeof(args.key));
    payload.remove_prefix(sizeof(args.key));
  }
  args.has_text = (record.flags & (kHasArgs | kHasParts)) != 0;
  if ((record.flags & kHasArgs) != 0) {
    args.good = take_counted(&payload, &args.text);
  }
  return args;
}

}  // namespace shp
