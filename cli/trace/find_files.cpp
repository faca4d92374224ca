#include "cli/trace/find_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "cli/trace/byte_source.h"
#include "cli/trace/gz_source.h"
#include "cli/trace/output_file.h"
#include "cli/trace/sqlite_reader.h"
#include "common/base/unique_fd.h"
#include "common/jsonl/span_format.h"

namespace shp {
namespace {

namespace fs = std::filesystem;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool named_like_a_trace(const std::string& path) {
  return ends_with(path, ".json") || ends_with(path, ".json.gz");
}

struct Listing {
  std::vector<fs::directory_entry> entries;  // no directories; sorted
  std::vector<PassedFile> unreadable;        // directories
};

Status list_into(const fs::path& directory, Listing& listing) {
  std::error_code problem;
  std::vector<fs::path> below;
  fs::directory_iterator at(directory, problem);
  while (!problem && at != fs::directory_iterator()) {
    std::error_code unknown;
    if (at->is_directory(unknown) && !at->is_symlink(unknown)) {
      below.push_back(at->path());
    } else {
      listing.entries.push_back(*at);
    }
    at.increment(problem);
  }
  if (problem) {
    return error(problem.message());
  }
  for (const fs::path& path : below) {
    const Status listed = list_into(path, listing);
    if (!listed) {
      listing.unreadable.push_back({path.string(), listed.error().message});
    }
  }
  return {};
}

// Of everything below `root`; it is an Error when `root` cannot be read itself.
Result<Listing> list(const std::string& root) {
  Listing listing;
  const Status listed = list_into(root, listing);
  if (!listed) {
    return context(root, listed.error());
  }
  std::sort(listing.entries.begin(), listing.entries.end());
  return listing;
}

bool is_regular(const fs::directory_entry& entry) {
  std::error_code problem;
  return !entry.is_symlink(problem) && entry.is_regular_file(problem);
}

// The first bytes of a file; empty when it cannot be read.
std::string head_of(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string head(4096, '\0');
  const size_t got =
      fd ? read_at(fd.get(), head.data(), head.size(), 0).value_or(0) : 0;
  head.resize(got);
  return head;
}

// gzip, or text whose first character opens an object or an array.
bool may_be_trace(const std::string& head) {
  if (head.substr(0, 2) == "\x1f\x8b") {
    return true;
  }
  const std::string text =
      head.substr(0, 3) == "\xef\xbb\xbf" ? head.substr(3) : head;
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos &&
         (text[first] == '{' || text[first] == '[');
}

// What profilers leave beside their traces, by the end of the name.
struct OtherKind {
  std::string_view end;
  const char* reason;
};
constexpr OtherKind kOtherKinds[] = {
    {".tmp", "is a writer's unfinished file"},
    {".pending", "is a host file that is still being written"},
    {".pickle", "is a pickle"},
    {".pkl", "is a pickle"},
    {".csv", "is a table (CSV)"},
    {".db", "is a database"},
    {".rpd", "is a database"},
    {".sqlite", "is a database"},
    {".pftrace", "is a trace in Perfetto's own format"},
    {".perfetto-trace", "is a trace in Perfetto's own format"},
    {".html", "is a page"},
};

// Why an entry is left alone without a look at its JSON; empty when it is not.
std::string passed_by(const fs::directory_entry& entry,
                      const std::string& path) {
  std::error_code problem;
  if (entry.is_symlink(problem)) {
    return "is a link";
  }
  if (!entry.is_regular_file(problem)) {
    return "is no regular file";
  }
  for (const OtherKind& kind : kOtherKinds) {
    if (ends_with(path, kind.end)) {
      return kind.reason;
    }
  }
  // Of the directories' other files, those that name themselves traces get a
  // whole look, to say at which byte they are none.
  const std::string head = head_of(path);
  if (may_be_trace(head) || named_like_a_trace(path)) {
    return {};
  }
  return head.substr(0, 15) == "SQLite format 3" ? "is a database"
                                                 : "is not JSON";
}

// Device profilers leave databases of their own in the same directories. One
// that cannot be read may be ours, and is not passed over in silence.
bool holds_a_session(const std::string& path) {
  return is_sqlite(path) && !is_foreign_database(path);
}

}  // namespace

Result<FoundHosts> find_host_files(const std::string& root) {
  const Result<Listing> listing = list(root);
  if (!listing) {
    return tl::unexpected<Error>(listing.error());
  }
  FoundHosts found;
  found.unreadable = listing->unreadable;
  for (const fs::directory_entry& entry : listing->entries) {
    const std::string path = entry.path().string();
    const bool named = ends_with(path, kHostFileSuffix) ||
                       ends_with(path, ".db") || ends_with(path, ".sqlite") ||
                       ends_with(path, ".sqlite3");
    if (named && is_regular(entry) &&
        (ends_with(path, kHostFileSuffix) || holds_a_session(path))) {
      found.files.push_back(path);
    }
  }
  return found;
}

Result<std::vector<std::string>> list_host_files(
    const std::vector<std::string>& inputs) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    if (!std::filesystem::is_directory(input)) {
      paths.push_back(input);
      continue;
    }
    const Result<FoundHosts> found = find_host_files(input);
    if (!found) {
      return tl::unexpected<Error>(found.error());
    }
    if (!found->unreadable.empty()) {
      const PassedFile& first = found->unreadable.front();
      return error(first.path + ": " + first.reason);
    }
    if (found->files.empty()) {
      return error(input + ": no closed host files in it");
    }
    paths.insert(paths.end(), found->files.begin(), found->files.end());
  }
  return paths;
}

Result<std::vector<std::string>> find_manifests(const std::string& root) {
  const Result<Listing> listing = list(root);
  if (!listing) {
    return tl::unexpected<Error>(listing.error());
  }
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : listing->entries) {
    const std::string path = entry.path().string();
    if (is_regular(entry) && ends_with(path, ".closed.json")) {
      found.push_back(path);
    }
  }
  return found;
}

Result<FoundFiles> find_trace_files(const std::string& root) {
  const Result<Listing> listing = list(root);
  if (!listing) {
    return tl::unexpected<Error>(listing.error());
  }
  FoundFiles found;
  found.unreadable = listing->unreadable;
  for (const fs::directory_entry& entry : listing->entries) {
    const std::string path = entry.path().string();
    const std::string name = file_name_of(path);
    const bool host_file =
        ends_with(name, kHostFileSuffix) || ends_with(name, ".closed.json");
    const bool ours =
        name.compare(0, kTemporaryPrefix.size(), kTemporaryPrefix) == 0;
    if (ours && ends_with(name, ".tmp")) {
      found.temporaries.push_back(path);
    }
    if (host_file || ours) {
      continue;
    }
    const std::string reason = passed_by(entry, path);
    if (reason.empty()) {
      found.files.push_back(path);
    } else {
      found.passed.push_back({path, reason});
    }
  }
  return found;
}

}  // namespace shp
