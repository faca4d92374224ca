// What lies under a directory: host files to read, files that may be traces.
//
// Walks without following links, in a fixed order (by path, byte for byte).
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

namespace shp {

// What is left alone by its name or kind, or for want of permission, and why.
struct PassedFile {
  std::string path;
  std::string reason;
};

struct FoundHosts {
  std::vector<std::string> files;
  std::vector<PassedFile> unreadable;  // directories
};

struct FoundFiles {
  std::vector<std::string> files;
  std::vector<PassedFile> passed;
  std::vector<PassedFile> unreadable;    // directories
  std::vector<std::string> temporaries;  // of runs of ours
};

// Closed host files: *.jsonl, and SQLite files by their first bytes.
Result<FoundHosts> find_host_files(const std::string& root);

// The host files that a user names: files as they are, directories with all
// that are in them. An Error for a directory without any.
Result<std::vector<std::string>> list_host_files(
    const std::vector<std::string>& inputs);

// Manifests of archived host files, *.closed.json.
Result<std::vector<std::string>> find_manifests(const std::string& root);

// All other files: those that may be traces, and in `passed` those that are
// none by their kind, name or first bytes.
Result<FoundFiles> find_trace_files(const std::string& root);

}  // namespace shp
