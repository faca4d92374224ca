// The words of `shp run` when its program has ended. Pure: what happened in,
// lines out (each ended by "\n", none longer than a terminal is wide where the
// paths allow it).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/jsonl/line_reader.h"

namespace shp {

struct HostFile {
  std::string path;
  HostMetadata metadata;
};

struct RunOutcome {
  std::string directory;              // as the user gave it
  std::vector<HostFile> files;        // closed
  std::vector<std::string> problems;  // a line each: files that do not read, …
  std::vector<std::string> traces;    // Torch traces that appeared in there
  std::vector<int64_t> still_recording;  // pids of processes that go on
  size_t unpublished = 0;   // files of processes that ended, not published yet
  std::string why_nothing;  // for a program that LD_PRELOAD does not reach
};

[[nodiscard]] std::string report(const RunOutcome& outcome);

// "nothing lost", or how many and why.
[[nodiscard]] std::string losses(const std::vector<HostFile>& files);

// "python3 app.py --x": the program's own name, not the path of it; cut.
[[nodiscard]] std::string command_line(const std::vector<std::string>& argv);

// "1,234,567"
[[nodiscard]] std::string with_commas(uint64_t number);

// Quoted for a shell where that is needed.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace shp
