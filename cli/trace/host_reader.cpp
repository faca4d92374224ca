#include "cli/trace/host_reader.h"

#include "cli/trace/sqlite_reader.h"

namespace shp {
namespace {

class JsonlReader : public HostReader {
 public:
  explicit JsonlReader(LineReader lines) : lines_(std::move(lines)) {}

  const HostMetadata& metadata() const override { return lines_.metadata(); }
  Result<bool> next(HostSpan& span) override { return lines_.next(span); }
  const std::map<int64_t, std::string>& thread_names() const override {
    return lines_.thread_names();
  }
  const std::vector<HostClock>& clocks() const override {
    return lines_.clocks();
  }
  const std::vector<HostOpenSpan>& open_spans() const override {
    return lines_.open_spans();
  }

 private:
  LineReader lines_;
};

}  // namespace

Result<std::unique_ptr<HostReader>> open_host_reader(const std::string& path) {
  if (is_sqlite(path)) {
    return open_sqlite_host(path);
  }
  Result<LineReader> lines = open_host_file(path);
  if (!lines) {
    return tl::unexpected<Error>(lines.error());
  }
  return std::make_unique<JsonlReader>(std::move(*lines));
}

Result<std::unique_ptr<HostReader>> open_mark_reader(const std::string& path) {
  Result<LineReader> lines = open_host_file(path);
  if (!lines) {
    return tl::unexpected<Error>(lines.error());
  }
  lines->give_marks();
  return std::make_unique<JsonlReader>(std::move(*lines));
}

Result<HostSummary> load_host_file(const std::string& path) {
  Result<std::unique_ptr<HostReader>> opened = open_host_reader(path);
  if (!opened) {
    return tl::unexpected<Error>(opened.error());
  }
  HostReader& reader = **opened;
  HostSummary file;
  file.path = path;
  HostSpan span;
  while (true) {
    const Result<bool> got = reader.next(span);
    if (!got) {
      return tl::unexpected<Error>(got.error());
    }
    if (!*got) {
      break;
    }
    ++file.spans;
  }
  file.metadata = reader.metadata();
  file.clocks = reader.clocks();
  return file;
}

}  // namespace shp
