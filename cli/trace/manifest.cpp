#include "cli/trace/manifest.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "cli/trace/loose_json.h"
#include "cli/trace/output_file.h"
#include "cli/trace/sha256.h"
#include "common/jsonl/json_check.h"
#include "common/jsonl/metadata_reader.h"

namespace shp {
namespace {

// The samples that start and stop took around themselves.
constexpr const char* kAnchors[] = {
    "start_before", "start_after", "stop_before", "stop_after"};

std::vector<ClockPoint> raw_samples(std::string_view anchors) {
  std::vector<ClockPoint> points;
  for (const char* name : kAnchors) {
    const std::string_view anchor = loose_member(anchors, name);
    const auto host = loose_int(loose_member(anchor, "monotonic_ns"));
    const auto raw = loose_int(loose_member(anchor, "monotonic_raw_ns"));
    const auto width = loose_int(loose_member(anchor, "uncertainty_ns"));
    const bool usable = host && raw && width && is_time(*host) &&
                        is_time(*raw) && *width >= 0 && is_time(*width);
    if (usable && (points.empty() || points.back().host_ns < *host)) {
      points.push_back({*host, *raw, (*width + 1) / 2});
    }
  }
  return points;
}

}  // namespace

Result<Manifest> read_manifest(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!is_json(text) ||
      *skip_json_space(text.data(), text.data() + text.size()) != '{') {
    return error(path + ": is not a manifest");
  }
  JsonMembers members(text);
  Manifest manifest;
  manifest.path = path;
  if (members.string("type") != "host_rank_archive") {
    return error(path + ": is not a manifest");
  }
  manifest.session_id = members.need_string("session_id");
  manifest.hostname = members.need_string("hostname");
  manifest.sha256 = members.need_string("db_sha256");
  manifest.pid = members.need_integer("pid");
  manifest.rank = members.integer("rank");
  // The path is relative to a capture root that may have moved; the file lies
  // beside its manifest wherever that is.
  const std::string name =
      file_name_of(members.need_string("db_relative_path"));
  if (!members.problem().empty()) {
    return error(path + ": " + members.problem());
  }
  manifest.host_path = directory_of(path) + "/" + name;
  manifest.raw_samples = raw_samples(loose_member(text, "clock_anchors"));
  return manifest;
}

Status apply_manifest(const Manifest& manifest, HostSummary& host) {
  const HostMetadata& metadata = host.metadata;
  const std::string wrong = host.path + ": does not match its manifest " +
                            file_name_of(manifest.path);
  if (metadata.session_id != manifest.session_id) {
    return error(wrong + ": another session_id");
  }
  if (metadata.pid != manifest.pid || metadata.hostname != manifest.hostname) {
    return error(wrong + ": another process");
  }
  const Result<std::string> digest = sha256_of_file(host.path);
  if (!digest) {
    return tl::unexpected<Error>(digest.error());
  }
  if (*digest != manifest.sha256) {
    return error(wrong + ": another digest");
  }
  host.rank = manifest.rank;
  host.raw_samples = manifest.raw_samples;
  return {};
}

}  // namespace shp
