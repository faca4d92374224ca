// SessionFile: a session's host file from its pending name to its final one,
// over a file system that may be full, failing or slow. One a session, on its
// thread; ExclusiveFile does the writing.
//
// A write that fails is tried again until it works: meanwhile the records wait
// in the client's rings. What to do in between, and when to stop trying, is
// asked of the session by `on_stuck`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/jsonl/line_writer.h"
#include "common/publish/exclusive_file.h"

namespace shp {

class SessionFile : public LineSink {
 public:
  // Called after each failed try; waits a while. False: stop trying.
  using OnStuck = std::function<bool(const Error&)>;

  SessionFile(std::string label, OnStuck on_stuck);

  // Makes the pending file and its reserved first line. `directory` stays the
  // caller's and must outlive this.
  [[nodiscard]] Status create(int directory,
                              const std::string& name,
                              mode_t mode,
                              const HostFileMetadata& metadata);

  // Instead of create(): goes on with what another daemon wrote, up to its
  // first `bytes`; 0: nothing of it counts, and the file begins anew.
  [[nodiscard]] Status take_over(int directory,
                                 const std::string& name,
                                 UniqueFd fd,
                                 uint64_t bytes,
                                 const HostFileMetadata& metadata);

  [[nodiscard]] bool write(std::string_view bytes) override;

  // Fills in line 1 and gives the file its name. Tries until it works, the name
  // turns out taken (EEXIST), the pending file is gone (ESTALE), or on_stuck
  // gives up.
  [[nodiscard]] Status publish(const HostFileMetadata& metadata,
                               const std::vector<OpenSpanEntry>& open_spans);

  uint64_t size() const { return file_.size(); }
  int fd() const { return file_.fd(); }
  // It has its final name already: only publish_again() is left to do.
  bool linked() const { return file_.linked(); }
  [[nodiscard]] Status publish_again() { return file_.publish(); }

 private:
  bool stuck(const Error& why);
  void note_unstuck();

  std::string label_;  // for the log
  OnStuck on_stuck_;
  ExclusiveFile file_;
  bool stuck_ = false;
};

}  // namespace shp
