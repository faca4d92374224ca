// What a trace file of our own begins and ends with: for export and --combine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cli/trace/text_sink.h"
#include "common/jsonl/host_types.h"

namespace shp {

// The last of Kineto's base times at or before `ns`: times that count from it
// fit a viewer's double to the ns (output_json.h, "trimonths").
int64_t kineto_base(int64_t ns);

// Up to the events array's "[".
std::string trace_header(int64_t base_ns);
inline constexpr std::string_view kTraceFooter = "\n]\n}\n";

// "python3 serve.py @ host7 (251)".
std::string process_label(const HostMetadata& metadata);

// gzip when the path ends in .gz.
std::unique_ptr<TextSink> make_sink(int fd, const std::string& path);

}  // namespace shp
