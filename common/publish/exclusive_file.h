// ExclusiveFile: a file that is written under NAME.pending and appears as NAME
// whole, or not at all.
//
//   create ─► append … ─► write_front ─► publish
//              NAME.pending, O_EXCL       fsync, link, unlink, fsync directory
//
// Nobody's file is ever overwritten or removed: both names are taken only when
// they are free, and the pending name is unlinked only while it is this very
// file. A file that is dropped unpublished keeps its pending name, with what
// was written. Names are relative to a directory descriptor, so that the
// caller's rights to that directory decide. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace shp {

class ExclusiveFile {
 public:
  ExclusiveFile() = default;

  // `directory` stays the caller's and must outlive this. EEXIST: somebody has
  // one of the two names.
  [[nodiscard]] static Result<ExclusiveFile> create(int directory,
                                                    std::string name,
                                                    mode_t mode = 0644);

  // Goes on with the open pending file of somebody who died over it, cut to its
  // first `bytes`. One that has its final name already is only there to be
  // published again, and left as it is. ESTALE: it is shorter than that.
  [[nodiscard]] static Result<ExclusiveFile> take_over(int directory,
                                                       std::string name,
                                                       UniqueFd fd,
                                                       uint64_t bytes);
  // Opens NAME.pending for that.
  [[nodiscard]] static Result<UniqueFd> open_pending(int directory,
                                                     const std::string& name);

  // Appends what it can; `bytes` is moved behind what was written, so that a
  // call after ENOSPC goes on where this one stopped.
  [[nodiscard]] Status append(std::string_view* bytes);

  // Overwrites the first bytes of the file.
  [[nodiscard]] Status write_front(std::string_view bytes);

  // May be called again after a failure. EEXIST: the final name was taken
  // meanwhile; the pending file stays.
  [[nodiscard]] Status publish();

  // Takes the pending name away again, if it still is this file.
  void remove_pending();

  uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  // It has its final name.
  bool linked() const { return linked_; }
  const std::string& name() const { return name_; }
  const std::string& pending_name() const { return pending_; }

 private:
  Status link_final();
  bool pending_is_ours() const { return is_ours(pending_); }
  bool is_ours(const std::string& name) const;

  int directory_ = -1;
  UniqueFd fd_;
  std::string name_;
  std::string pending_;
  uint64_t size_ = 0;
  uint64_t started_bytes_ = 0;  // handed to write-back
  bool linked_ = false;
};

}  // namespace shp
