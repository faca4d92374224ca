#include <fmt/format.h>

#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/doctor/checks.h"

namespace shp {
namespace {

using Check = void (*)(const Patient& patient, Findings* out);
constexpr Check kChecks[] = {
    check_library,
    check_daemon,
    check_clock,
    check_memory,
    check_directory,
    check_program,
    check_guards,
};

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kNote:
      return "note";
    case Verdict::kBad:
      break;
  }
  return "BAD ";
}

int examine(const Patient& patient) {
  Findings findings;
  for (const Check check : kChecks) {
    check(patient, &findings);
  }
  int bad = 0;
  for (const Finding& finding : findings) {
    fmt::print("{}  {}\n", word_of(finding.verdict), finding.what);
    if (!finding.mend.empty()) {
      fmt::print("      → {}\n", finding.mend);
    }
    bad += finding.verdict == Verdict::kBad ? 1 : 0;
  }
  if (bad == 0) {
    fmt::print("Nothing here would stop a recording.\n");
  } else {
    fmt::print(
        "{} {} would stop a recording.\n", bad, bad == 1 ? "thing" : "things");
  }
  return bad == 0 ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  auto patient = std::make_shared<Patient>();
  CLI::App* verb = app.add_subcommand(
      "doctor", "Say what would stop a recording on this host, and the mend");
  verb->add_option("-o,--output", patient->directory, "Where files are to go");
  verb->add_option("program", patient->program, "What is to be recorded");
  verb->footer(
      "Example:\n"
      "  shp doctor -o out python3\n"
      "Exit status: 0 nothing would stop a recording, 1 something would.");
  verb->callback([patient, &status] { status = examine(*patient); });
}

}  // namespace shp
