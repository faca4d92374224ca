// One file that may be a trace: opened, scanned, and known again later.
//
// For merge-dir; what a splice needs of the first pass is kept in here.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/trace/gz_source.h"
#include "cli/trace/scan.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp {

// Tells whether a file is still the one, with the content, that was looked at.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  off_t bytes = 0;
  timespec changed = {};

  static FileIdentity of(const struct stat& status);
  bool operator==(const FileIdentity& other) const;
};

struct ScannedTrace {
  FileIdentity identity;
  bool gz = false;
  TraceScan scan;
  // gz: from where on the file has to be compressed again.
  std::optional<BlockStart> start;
};

// So many bytes of the file stay as they are whatever is put in.
uint64_t unchanged_bytes(const ScannedTrace& trace);

class PrefixCopy;

// Reads `fd` from its beginning. The Error does not name the file. `copy`
// (null: none) is told what will stay as it is.
Result<ScannedTrace> scan_file(int fd, PrefixCopy* copy = nullptr);

// Opens for reading; Error: "PATH: why".
Result<UniqueFd> open_for_reading(const std::string& path);

// Opens `path` and locks it against other runs of ours, waiting for them; what
// comes back is the file that has this name now.
Result<UniqueFd> open_locked(const std::string& path);

}  // namespace shp
