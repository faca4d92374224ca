// Why a session ended, as span_format.h's "end_reason" says it.
#pragma once

#include <string_view>

namespace shp {

enum class EndReason { kNone, kStop, kExit, kExec, kKilled, kDaemonStopped };

inline std::string_view name_of(EndReason reason) {
  switch (reason) {
    case EndReason::kStop:
      return "stop";
    case EndReason::kExit:
      return "exit";
    case EndReason::kExec:
      return "exec";
    case EndReason::kKilled:
      return "killed";
    case EndReason::kDaemonStopped:
      return "daemon_stopped";
    case EndReason::kNone:
      break;
  }
  return "";
}

// The metadata's "complete": all that the program was to record is in the file.
inline bool is_orderly(EndReason reason) {
  return reason == EndReason::kStop || reason == EndReason::kExit ||
         reason == EndReason::kExec;
}

// Its open spans can never end any more: they are listed.
inline bool process_is_gone(EndReason reason) {
  return reason == EndReason::kExit || reason == EndReason::kExec ||
         reason == EndReason::kKilled;
}

}  // namespace shp
