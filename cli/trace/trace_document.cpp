#include "cli/trace/trace_document.h"

#include "cli/trace/output_file.h"

namespace shp {
namespace {

constexpr int64_t kBasePeriodNs = 7'889'238LL * 1'000'000'000;

}  // namespace

int64_t kineto_base(int64_t ns) {
  const int64_t rest = ns % kBasePeriodNs;
  return ns - rest - (rest < 0 ? kBasePeriodNs : 0);
}

std::string trace_header(int64_t base_ns) {
  return "{\n\"displayTimeUnit\":\"ns\",\n\"shpExport\":\"" SHP_VERSION
         "\",\n\"baseTimeNanoseconds\":" +
         std::to_string(base_ns) + ",\n\"traceEvents\":[\n";
}

std::string process_label(const HostMetadata& metadata) {
  std::string label;
  for (size_t i = 0; i < metadata.argv.size() && i < 3; ++i) {
    label += file_name_of(metadata.argv[i]) + " ";
  }
  return label + "@ " + metadata.hostname + " (" +
         std::to_string(metadata.pid) + ")";
}

std::unique_ptr<TextSink> make_sink(int fd, const std::string& path) {
  const bool gz =
      path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  if (gz) {
    return std::make_unique<GzSink>(fd);
  }
  return std::make_unique<FdSink>(fd);
}

}  // namespace shp
