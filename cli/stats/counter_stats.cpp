#include "cli/stats/counter_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/run/report.h"
#include "cli/stats/stats_text.h"
#include "cli/terminal_text.h"
#include "common/jsonl/json_check.h"

namespace shp {

void CounterStats::take(const HostSpan& mark) {
  const std::string name = json_unescape(mark.name);
  if (mark.item == HostItem::kInstant) {
    CounterRow& row = rows_[name];
    row.name = name;
    ++row.count;
    return;
  }
  for_each_member(mark.args, [&](std::string_view key, std::string_view value) {
    const double number = std::strtod(std::string(value).c_str(), nullptr);
    take_value(key == "value" ? name : name + "." + std::string(key), number);
    return true;
  });
}

void CounterStats::take_value(const std::string& name, double value) {
  CounterRow& row = rows_[name];
  row.name = name;
  if (row.count == 0) {
    row.values = CounterRow::Values{value, value, value, 0};
  }
  ++row.count;
  CounterRow::Values& values = *row.values;
  values.last = value;
  values.min = std::min(values.min, value);
  values.max = std::max(values.max, value);
  values.sum += value;
}

std::vector<CounterRow> CounterStats::rows() const {
  std::vector<CounterRow> rows;
  for (const auto& [name, row] : rows_) {
    if (row.count > 0 || row.values) {
      rows.push_back(row);
    }
  }
  return rows;
}

void CounterStats::clear_numbers() {
  for (auto& [name, row] : rows_) {
    row.count = 0;
    if (row.values) {
      const double last = row.values->last;
      row.values = CounterRow::Values{last, last, last, 0};
    }
  }
}

std::string counter_table(const std::vector<CounterRow>& rows, double seconds) {
  std::string out = fmt::format("{:>13} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n",
                                "VALUES",
                                "PER S",
                                "LAST",
                                "MIN",
                                "MEAN",
                                "MAX",
                                "COUNTER OR INSTANT");
  for (const CounterRow& row : rows) {
    out += fmt::format("{:>13} {:>9} ",
                       with_commas(row.count),
                       short_rate(row.count, seconds));
    if (row.values) {
      const auto count = static_cast<double>(std::max<uint64_t>(row.count, 1));
      const double mean =
          row.count == 0 ? row.values->last : row.values->sum / count;
      out += fmt::format("{:>9.6g} {:>9.6g} {:>9.6g} {:>9.6g}",
                         row.values->last,
                         row.values->min,
                         mean,
                         row.values->max);
    } else {
      out += fmt::format("{:>39}", "");
    }
    out += "  " + for_terminal(row.name) + "\n";
  }
  return out;
}

std::string counter_json(const std::vector<CounterRow>& rows) {
  std::string out = "[";
  for (const CounterRow& row : rows) {
    out += out.size() > 1 ? "," : "";
    out += fmt::format(
        R"({{"name":{},"count":{})", json_quote(row.name), row.count);
    if (row.values) {
      out += fmt::format(R"(,"last":{},"min":{},"max":{},"sum":{})",
                         row.values->last,
                         row.values->min,
                         row.values->max,
                         row.values->sum);
    }
    out += "}";
  }
  return out + "]";
}

}  // namespace shp
