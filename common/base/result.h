// Result<T>: a value, or one Error that says what failed, where and why.
//
// Used by the daemon, the command line and common/ (and by the slow paths of
// preload/, never by its span calls). An Error's message is one line without a
// trailing newline, ready to be shown after "shp: ". A function either handles
// a documented condition or adds context with `context()` and passes it on.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace shp {

struct Error {
  std::string message;
  int errno_value = 0;  // 0 when the failure is not a system call's
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> error(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message), 0});
}

// "what: strerror(errno_value)"; the errno is kept for callers that branch.
[[nodiscard]] inline tl::unexpected<Error> errno_error(std::string_view what,
                                                       int errno_value) {
  return tl::unexpected<Error>(Error{
      std::string(what) + ": " + std::strerror(errno_value), errno_value});
}

// "where: " in front of what an inner function said.
[[nodiscard]] inline tl::unexpected<Error> context(std::string_view where,
                                                   Error inner) {
  return tl::unexpected<Error>(
      Error{std::string(where) + ": " + inner.message, inner.errno_value});
}

}  // namespace shp
