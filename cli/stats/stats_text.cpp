#include "cli/stats/stats_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/run/report.h"
#include "cli/terminal_text.h"
#include "common/jsonl/json_check.h"

namespace shp {
namespace {

constexpr size_t kShortestName = 16;
constexpr size_t kNumbersWidth = 84;  // of a line's columns before the name

double rate(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

std::string short_rate(uint64_t count, double seconds) {
  const double per_second = rate(count, seconds);
  if (per_second >= 1e6) {
    return fmt::format("{:.2f}M", per_second / 1e6);
  }
  if (per_second >= 1e4) {
    return fmt::format("{:.1f}k", per_second / 1e3);
  }
  return fmt::format("{:.{}f}", per_second, per_second < 100 ? 1 : 0);
}

std::string short_duration(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1000) {
    return fmt::format("{} ns", ns);
  }
  const bool is_us = ns < 1'000'000;
  const bool is_ms = !is_us && ns < 1'000'000'000;
  const double scaled = value / (is_us ? 1e3 : is_ms ? 1e6 : 1e9);
  const int digits = scaled < 10 ? 2 : scaled < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}",
                     scaled,
                     digits,
                     is_us   ? "us"
                     : is_ms ? "ms"
                             : "s");
}

void sort_rows(std::vector<NameRow>& rows, std::string_view column) {
  const auto by = [&](auto value) {
    std::stable_sort(
        rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
          return value(a) > value(b);
        });
  };
  if (column == "name") {
    std::stable_sort(
        rows.begin(), rows.end(), [](const auto& a, const auto& b) {
          return a.name < b.name;
        });
  } else if (column == "self") {
    by([](const NameRow& row) { return row.self_ns; });
  } else if (column == "count") {
    by([](const NameRow& row) { return row.count; });
  } else if (column == "p50") {
    by([](const NameRow& row) { return row.p50_ns; });
  } else if (column == "p99") {
    by([](const NameRow& row) { return row.p99_ns; });
  } else if (column == "max") {
    by([](const NameRow& row) { return row.max_ns; });
  } else if (column == "share") {
    by([](const NameRow& row) { return row.thread_share; });
  } else {
    by([](const NameRow& row) { return row.total_ns; });
  }
}

std::string stats_table(const std::vector<NameRow>& rows,
                        const TableShape& shape) {
  std::string out =
      fmt::format("{:>13} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}  {}\n",
                  "SPANS",
                  "PER S",
                  "P50",
                  "P99",
                  "MAX",
                  "TOTAL",
                  "SELF",
                  "THREAD",
                  "NAME");
  const size_t shown = shape.most_rows == 0
                           ? rows.size()
                           : std::min(rows.size(), shape.most_rows);
  const size_t room =
      shape.width == 0
          ? 0
          : std::max(kShortestName,
                     shape.width - std::min(shape.width, kNumbersWidth));
  for (size_t i = 0; i < shown; ++i) {
    const NameRow& row = rows[i];
    out += fmt::format(
        "{:>13} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6.1f}%  {}\n",
        with_commas(row.count),
        short_rate(row.count, shape.seconds),
        short_duration(row.p50_ns),
        short_duration(row.p99_ns),
        short_duration(row.max_ns),
        short_duration(row.total_ns),
        short_duration(row.self_ns),
        100 * row.thread_share,
        for_terminal(row.name, room));
  }
  if (shown < rows.size()) {
    const size_t rest = rows.size() - shown;
    out += fmt::format("{:>13} more name{}\n", rest, rest == 1 ? "" : "s");
  }
  return out;
}

std::string stats_json(const std::vector<NameRow>& rows, double seconds) {
  std::string out = "[";
  for (const NameRow& row : rows) {
    out += out.size() > 1 ? "," : "";
    out += fmt::format(
        R"({{"name":{},"spans":{},"per_s":{:.6g},"total_ns":{},"self_ns":{},)"
        R"("min_ns":{},"p50_ns":{},"p99_ns":{},"max_ns":{},)"
        R"("thread_share":{:.6g},"threads":{}}})",
        json_quote(row.name),
        row.count,
        rate(row.count, seconds),
        row.total_ns,
        row.self_ns,
        row.min_ns,
        row.p50_ns,
        row.p99_ns,
        row.max_ns,
        row.thread_share,
        row.threads);
  }
  return out + "]";
}

}  // namespace shp
