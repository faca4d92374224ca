#include "cli/run/child_environment.h"

#include <algorithm>

namespace shp {
namespace {

// ld.so separates by both, and knows no escape.
constexpr std::string_view kSeparators = " :";

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(kSeparators), list.size());
    if (end > 0) {
      parts.push_back(list.substr(0, end));
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool is_sanitizer_runtime(std::string_view path) {
  const std::string_view name = base_name(path);
  const auto starts = [name](std::string_view with) {
    return name.starts_with(with);
  };
  return starts("libasan.") || starts("libtsan.") || starts("liblsan.") ||
         starts("libhwasan.") || starts("libclang_rt.");
}

void append(std::string& list, std::string_view path) {
  if (!list.empty()) {
    list += ':';
  }
  list += path;
}

}  // namespace

std::string preload_value(std::string_view users, std::string_view library) {
  std::string first;
  std::string rest;
  for (const std::string_view part : split(users)) {
    if (is_sanitizer_runtime(part)) {
      append(first, part);
    } else if (base_name(part) != base_name(library)) {
      append(rest, part);
    }
  }
  append(first, library);
  if (!rest.empty()) {
    append(first, rest);
  }
  return first;
}

Environment with_variables(const char* const* current,
                           const Variables& changes) {
  Environment result;
  for (const char* const* entry = current; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool changed =
        std::any_of(changes.begin(), changes.end(), [name](const auto& change) {
          return change.first == name;
        });
    if (!changed) {
      result.emplace_back(text);
    }
  }
  for (const auto& [name, value] : changes) {
    result.push_back(name + "=" + value);
  }
  return result;
}

}  // namespace shp
