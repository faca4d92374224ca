// Where a trace's text goes: a descriptor, plainly or as one gzip member.
// Buffered; call finish() at the end, or the rest is lost.
//
// One sink belongs to one thread. The descriptor stays the caller's.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace shp {

class TextSink {
 public:
  virtual ~TextSink() = default;
  virtual Status write(std::string_view text) = 0;
  virtual Status finish() = 0;
};

class FdSink : public TextSink {
 public:
  explicit FdSink(int fd);
  Status write(std::string_view text) override;
  Status finish() override;

 private:
  Status put(std::string_view text);

  int fd_;
  std::string buffer_;
  int64_t offset_;  // in the file of what comes next; negative: it has none
  int64_t begun_;   // up to where the disk was told to begin
};

class GzSink : public TextSink {
 public:
  explicit GzSink(int fd);
  ~GzSink() override;
  GzSink(const GzSink&) = delete;
  GzSink& operator=(const GzSink&) = delete;
  Status write(std::string_view text) override;
  Status finish() override;

 private:
  Status deflate_some(std::string_view text, int flush);

  int fd_;
  z_stream stream_{};
  std::vector<unsigned char> out_;
};

// All of it, whatever write(2) takes at a time.
Status write_fully(int fd, std::string_view bytes);

}  // namespace shp
