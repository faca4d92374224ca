// What `shp doctor` looks at: one function a part of the way that a span goes,
// each of which says what it found in plain words, and how to mend it. They
// look and change nothing, but for a file of no name in the output directory.
#pragma once

#include <string>
#include <vector>

namespace shp {

enum class Verdict {
  kGood,
  kNote,  // works, with something to know
  kBad,   // would stop a recording
};

struct Finding {
  Verdict verdict;
  std::string what;
  std::string mend;  // "" when there is nothing to do
};
using Findings = std::vector<Finding>;

struct Patient {
  std::string directory;  // where host files are to go, "" unknown
  std::string program;    // that is to be recorded, "" unknown
};

void check_library(const Patient& patient, Findings* out);
void check_daemon(const Patient& patient, Findings* out);
void check_clock(const Patient& patient, Findings* out);
void check_memory(const Patient& patient, Findings* out);
void check_directory(const Patient& patient, Findings* out);
void check_program(const Patient& patient, Findings* out);
void check_guards(const Patient& patient, Findings* out);

}  // namespace shp
