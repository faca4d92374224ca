// The words and the JSON of `shp stats` and `shp top`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/stats/span_stats.h"

namespace shp {

// Column to sort by: "total", "self", "count", "p50", "p99", "max", "share" or
// "name".
inline constexpr const char* kSortColumns[] = {
    "total", "self", "count", "p50", "p99", "max", "share", "name"};
void sort_rows(std::vector<NameRow>& rows, std::string_view column);

struct TableShape {
  double seconds = 0;    // that the rows stand for: for the rates
  size_t most_rows = 0;  // 0: all of them
  size_t width = 0;      // of a line in characters, 0: whatever it needs
};

// A heading and a line each; the last says how many are not shown.
std::string stats_table(const std::vector<NameRow>& rows,
                        const TableShape& shape);

// The rows as a JSON array, times in ns.
std::string stats_json(const std::vector<NameRow>& rows, double seconds);

// How many a second, in at most eight characters: "12.5", "850", "1.23M".
std::string short_rate(uint64_t count, double seconds);

// "850 ns", "12.3 us", "4.56 ms", "1.20 s"
std::string short_duration(int64_t ns);

}  // namespace shp
