#include "cli/run/capture.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/jsonl/span_format.h"

namespace shp {
namespace {

namespace fs = std::filesystem;
using rapidjson::Value;

// Programs put captures into folders of their own below the one that we name;
// deeper than this is somebody else's tree.
constexpr int kMaxDepth = 4;

const Value* member(const Value& object, const char* key) {
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

uint64_t count(const Value& object, const char* key) {
  const Value* value = member(object, key);
  return value && value->IsUint64() ? value->GetUint64() : 0;
}

std::string text(const Value& value) {
  return value.IsString()
             ? std::string(value.GetString(), value.GetStringLength())
             : std::string();
}

std::string joined(const Value* argv) {
  std::string result;
  if (argv && argv->IsArray()) {
    for (const Value& argument : argv->GetArray()) {
      result += result.empty() ? "" : " ";
      result += text(argument);
    }
  }
  return result;
}

bool is_closed(std::string_view name) {
  return name.ends_with(kHostFileSuffix);
}

bool is_pending(std::string_view name) {
  return name.ends_with(std::string(kHostFileSuffix) +
                        std::string(kPendingSuffix));
}

bool is_trace(std::string_view name) {
  return name.ends_with(".trace.json") || name.ends_with(".trace.json.gz");
}

template <typename Use>
void each_file(const std::string& directory, Use use) {
  std::error_code failed;
  for (fs::recursive_directory_iterator at(
           directory, fs::directory_options::skip_permission_denied, failed);
       !failed && at != fs::recursive_directory_iterator();
       at.increment(failed)) {
    if (at.depth() >= kMaxDepth) {
      at.disable_recursion_pending();
    }
    std::error_code ignored;
    if (at->is_regular_file(ignored)) {
      use(at->path().string());
    }
  }
}

}  // namespace

Result<HostFile> parse_metadata(std::string_view line) {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(line.data(), line.size());
  if (json.HasParseError() || !json.IsObject()) {
    return error("the first line is no metadata");
  }
  HostFile file;
  if (const Value* pid = member(json, "pid"); pid && pid->IsInt64()) {
    file.pid = pid->GetInt64();
  }
  file.program = joined(member(json, "argv"));
  file.written_spans = count(json, "written_spans");
  file.dropped_spans = count(json, "dropped_spans");
  file.bad_args = count(json, "bad_args");
  if (const Value* causes = member(json, "dropped");
      causes && causes->IsObject()) {
    for (const auto& cause : causes->GetObject()) {
      if (cause.value.IsUint64() && cause.value.GetUint64() > 0) {
        file.dropped[text(cause.name)] = cause.value.GetUint64();
      }
    }
  }
  if (const Value* open = member(json, "open_spans"); open && open->IsArray()) {
    file.open_spans = open->Size();
  }
  if (const Value* complete = member(json, "complete")) {
    file.complete = complete->IsTrue();
  }
  if (const Value* reason = member(json, "end_reason")) {
    file.end_reason = text(*reason);
  }
  return file;
}

Result<HostFile> read_host_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line(kMetadataLineBytes, '\0');
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(in.gcount()));
  auto file = parse_metadata(line.substr(0, line.find('\n')));
  if (!file) {
    return context(path, file.error());
  }
  file->path = path;
  return file;
}

Capture::Capture(std::string directory) : directory_(std::move(directory)) {
  each_file(directory_,
            [this](std::string path) { before_.push_back(std::move(path)); });
  std::sort(before_.begin(), before_.end());
}

std::vector<std::string> Capture::fresh(
    bool (*wanted)(std::string_view)) const {
  std::vector<std::string> found;
  each_file(directory_, [&](std::string path) {
    if (wanted(path) &&
        !std::binary_search(before_.begin(), before_.end(), path)) {
      found.push_back(std::move(path));
    }
  });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> Capture::closed() const {
  return fresh(is_closed);
}
std::vector<std::string> Capture::pending() const {
  return fresh(is_pending);
}
std::vector<std::string> Capture::traces() const {
  return fresh(is_trace);
}

}  // namespace shp
