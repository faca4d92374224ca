#include "cli/run/command_mark.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace shp {
namespace {

// Whether the next word belongs to this one: "-o DIR", but not "-oDIR",
// "--socket=S" or a flag.
bool takes_next_word(const CLI::App& verb, const std::string& word) {
  const CLI::Option* option = verb.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// Where the command begins, past the end when it is marked or not there.
size_t command_at(const CLI::App& verb, const std::vector<std::string>& words) {
  size_t i = 1;
  while (i < words.size() && words[i].size() > 1 && words[i][0] == '-') {
    if (words[i] == "--") {
      return words.size();
    }
    i += takes_next_word(verb, words[i]) ? 2 : 1;
  }
  return i;
}

}  // namespace

std::vector<std::string> marked_arguments(const CLI::App& app,
                                          int argc,
                                          const char* const* argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (!words.empty() && words.front() == "run") {
    const size_t at = command_at(*app.get_subcommand("run"), words);
    if (at < words.size()) {
      words.insert(words.begin() + static_cast<ptrdiff_t>(at), "--");
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace shp
