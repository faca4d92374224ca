#include "daemon/session_file.h"

#include <spdlog/spdlog.h>

namespace shp {
namespace {

// No waiting mends these: the name is somebody's (EEXIST), or the pending file
// was moved or removed, its directory perhaps with it (ESTALE).
bool is_final(const Error& why) {
  return why.errno_value == EEXIST || why.errno_value == ESTALE;
}

}  // namespace

SessionFile::SessionFile(std::string label, OnStuck on_stuck)
    : label_(std::move(label)), on_stuck_(std::move(on_stuck)) {}

Status SessionFile::create(int directory,
                           const std::string& name,
                           mode_t mode,
                           const HostFileMetadata& metadata) {
  Result<ExclusiveFile> file = ExclusiveFile::create(directory, name, mode);
  if (!file) {
    return tl::unexpected(file.error());
  }
  file_ = std::move(*file);
  const std::string line = metadata_line(metadata, {});
  std::string_view rest = line;
  Status written = file_.append(&rest);
  if (!written) {
    // Nobody has been told of this file yet, and it holds nothing.
    file_.remove_pending();
  }
  return written;
}

Status SessionFile::take_over(int directory,
                              const std::string& name,
                              UniqueFd fd,
                              uint64_t bytes,
                              const HostFileMetadata& metadata) {
  if (!fd) {
    Result<UniqueFd> opened = ExclusiveFile::open_pending(directory, name);
    if (!opened) {
      return tl::unexpected(opened.error());
    }
    fd = std::move(*opened);
  }
  Result<ExclusiveFile> file =
      ExclusiveFile::take_over(directory, name, std::move(fd), bytes);
  if (!file) {
    return tl::unexpected(file.error());
  }
  file_ = std::move(*file);
  if (bytes > 0 || file_.linked()) {
    return {};
  }
  const std::string line = metadata_line(metadata, {});
  std::string_view rest = line;
  return file_.append(&rest);
}

// Says so once, however long it lasts and whatever else it then fails with.
bool SessionFile::stuck(const Error& why) {
  if (!stuck_) {
    stuck_ = true;
    spdlog::error(
        "{}: {}; spans wait until it can be written", label_, why.message);
  }
  return on_stuck_(why);
}

void SessionFile::note_unstuck() {
  if (stuck_) {
    stuck_ = false;
    spdlog::warn("{}: can be written again", label_);
  }
}

bool SessionFile::write(std::string_view bytes) {
  for (;;) {
    if (const Status done = file_.append(&bytes); done) {
      note_unstuck();
      return true;
    } else if (!stuck(done.error())) {
      return false;
    }
  }
}

Status SessionFile::publish(const HostFileMetadata& metadata,
                            const std::vector<OpenSpanEntry>& open_spans) {
  const std::string line = metadata_line(metadata, open_spans);
  for (;;) {
    Status done = file_.write_front(line);
    if (done) {
      done = file_.publish();
    }
    if (done) {
      note_unstuck();
      return done;
    }
    if (is_final(done.error()) || !stuck(done.error())) {
      return done;
    }
  }
}

}  // namespace shp
