#include "cli/stats/table_options.h"

#include <CLI/CLI.hpp>

#include "cli/stats/stats_text.h"

namespace shp {

const char* const kColumnsHelp =
    "Columns:\n"
    "  SPANS, PER S   how many of that name ended, in all and a second\n"
    "  P50, P99, MAX  of their durations, the first two within 2 %\n"
    "  TOTAL, SELF    their time together, and less what spans within them on\n"
    "                 the same thread took\n"
    "  THREAD         of the thread that gave most of its time to them, which\n"
    "                 part; nested ones of one name count once";

void add_sort_option(CLI::App& verb, std::string& column) {
  const std::vector<std::string> columns(std::begin(kSortColumns),
                                         std::end(kSortColumns));
  verb.add_option("--sort", column, "Column to sort by")
      ->check(CLI::IsMember(columns))
      ->capture_default_str();
}

}  // namespace shp
