// The manifest that an archived host file has beside it (NAME.closed.json of
// the Python package's attach_sglang): its rank, digest, and clock samples with
// CLOCK_MONOTONIC_RAW, which the predecessor's host files lack.
//
// Not trusted: what a manifest says of its file is checked against the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/trace/host_reader.h"
#include "common/base/result.h"

namespace shp {

struct Manifest {
  std::string path;
  std::string host_path;  // of the file that it is about
  std::string session_id;
  std::string hostname;
  std::string sha256;
  int64_t pid = 0;
  std::optional<int64_t> rank;
  std::vector<ClockPoint> raw_samples;  // MONOTONIC to MONOTONIC_RAW
};

// "PATH: why" when it is none. Reads `path` only.
Result<Manifest> read_manifest(const std::string& path);

// Puts rank and clock samples into the host file, once the manifest has proved
// to be about it.
Status apply_manifest(const Manifest& manifest, HostSummary& host);

}  // namespace shp
