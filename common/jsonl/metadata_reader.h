// The metadata of a session, from the members of a JSON object: presence, types
// and ranges of the keys of span_format.h.
//
// For line_reader.* and the reader of historical files; pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/jsonl/host_types.h"

namespace shp {

// The members of an object that is_json(), by key; the last of equal keys
// counts. `object` outlives this. The need_ functions remember the first key
// that is wrong.
class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object);

  const std::string& problem() const { return problem_; }

  std::optional<int64_t> integer(const char* key) const;
  std::string string(const char* key) const;
  std::vector<std::string> strings(const char* key) const;
  // The members of an object that are integers above 0.
  std::map<std::string, int64_t> counts(const char* key) const;

  int64_t need_integer(const char* key);
  int64_t need_count(const char* key);
  std::string need_string(const char* key);
  bool need_bool(const char* key);
  void complain(const char* key, const char* what);

 private:
  std::map<std::string, std::string_view, std::less<>> members_;
  std::string problem_;
};

// Times that no sum or difference of two of them can overflow with.
inline bool is_time(int64_t ns) {
  return ns >= -(int64_t{1} << 61) && ns <= (int64_t{1} << 61);
}

// What is wrong with the metadata, empty when nothing is. Schema versions
// before 3 are of historical files.
std::string parse_metadata(std::string_view object,
                           HostMetadata& out,
                           int oldest_version = 3);

}  // namespace shp
