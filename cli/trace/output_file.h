// A file that appears whole or not at all: written beside its place under a
// temporary name, then fsync and rename. Without commit() nothing is left.
//
// For export and merge-dir; one object belongs to one thread.
#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp {

// Names of ours begin like this and end in ".tmp"; a killed run leaves one.
inline constexpr std::string_view kTemporaryPrefix = ".shp-";

// Removes a temporary file that nobody is writing any more: a writer holds its
// lock, and a file is not judged in its first seconds.
void remove_leftover(const std::string& path);

class OutputFile {
 public:
  // The temporary file lies in the directory of `path`.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  // Mode and, where the system lets us, owner of the open file `fd`.
  Status copy_mode(int fd);

  // Replaces what is at `path`.
  Status commit();

 private:
  OutputFile(std::string path, std::string temporary, UniqueFd fd);

  std::string path_;
  std::string temporary_;  // empty once committed
  UniqueFd fd_;
};

// "." for a path without a slash.
std::string directory_of(const std::string& path);
std::string file_name_of(const std::string& path);

}  // namespace shp
