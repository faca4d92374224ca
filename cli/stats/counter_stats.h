// What `shp top` and `shp stats` say of marks: each counter's values and how
// often each instant was. For one thread of ours.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/jsonl/host_types.h"

namespace shp {

struct CounterRow {
  std::string name;  // "queue", or "kv.free" for one of several series
  uint64_t count = 0;
  // Of a counter; an instant has no values.
  struct Values {
    double last = 0;
    double min = 0;
    double max = 0;
    double sum = 0;
  };
  std::optional<Values> values;
};

class CounterStats {
 public:
  // `mark` is an instant or a counter. The values of several processes for one
  // name count as one counter's.
  void take(const HostSpan& mark);
  // By name.
  std::vector<CounterRow> rows() const;
  // Forgets how often; a counter keeps its last value.
  void clear_numbers();

 private:
  void take_value(const std::string& name, double value);

  std::map<std::string, CounterRow> rows_;
};

std::string counter_table(const std::vector<CounterRow>& rows, double seconds);
// The rows as a JSON array.
std::string counter_json(const std::vector<CounterRow>& rows);

}  // namespace shp
