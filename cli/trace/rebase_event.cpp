#include "cli/trace/rebase_event.h"

#include <algorithm>
#include <array>

#include "cli/trace/event_text.h"
#include "cli/trace/loose_json.h"

namespace shp {
namespace {

constexpr uint64_t kIdLimit = uint64_t{1} << 52;

// FNV-1a, for ids that are too large to be put beside the trace's number.
uint64_t hash_of(std::string_view text, uint32_t trace) {
  uint64_t hash = 0xcbf29ce484222325U ^ trace;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash % kIdLimit;
}

std::string new_time(std::string_view token, const EventRebase& rebase) {
  const std::optional<int64_t> old = loose_ns(token);
  int64_t moved = 0;
  if (!old || __builtin_add_overflow(
                  *old, rebase.old_base_ns - rebase.new_base_ns, &moved)) {
    return std::string(token);
  }
  std::string out;
  append_us(out, moved);
  return out;
}

struct Replacement {
  std::string_view old;
  std::string text;
};

}  // namespace

std::string rebase_id(std::string_view token, uint32_t trace) {
  const std::optional<int64_t> number = loose_int(token);
  if (token.front() == '"') {
    return "\"" + std::to_string(trace) + ":" + std::string(token.substr(1));
  }
  const bool small = number && *number >= 0 && *number < (int64_t{1} << 32) &&
                     trace < (1U << 20);
  return std::to_string(small ? (uint64_t{trace} << 32) +
                                    static_cast<uint64_t>(*number)
                              : hash_of(token, trace));
}

std::string rebase_event(std::string_view text,
                         const EventFields& fields,
                         std::string_view pid,
                         const EventRebase& rebase) {
  std::array<Replacement, 3> replacements = {{
      {fields.pid, std::string(pid)},
      {fields.ts, fields.ts.empty() ? "" : new_time(fields.ts, rebase)},
      {fields.id, fields.id.empty() ? "" : rebase_id(fields.id, rebase.trace)},
  }};
  std::sort(replacements.begin(),
            replacements.end(),
            [](const Replacement& a, const Replacement& b) {
              return a.old.data() < b.old.data();
            });
  std::string out;
  out.reserve(text.size() + 32);
  size_t at = 0;
  for (const Replacement& one : replacements) {
    if (one.old.empty()) {
      continue;
    }
    const size_t begin = static_cast<size_t>(one.old.data() - text.data());
    out.append(text.substr(at, begin - at)).append(one.text);
    at = begin + one.old.size();
  }
  return out.append(text.substr(at));
}

}  // namespace shp
