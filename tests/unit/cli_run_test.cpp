#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/run/capture.h"
#include "cli/run/child_environment.h"
#include "cli/run/command_mark.h"
#include "cli/run/locate.h"
#include "cli/run/preloadable.h"
#include "cli/run/report.h"

namespace fs = std::filesystem;

namespace {

constexpr const char* kLibrary = "/opt/shp/libshp.so";

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/shp-unit-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    chmod((path_ / name).c_str(), 0755);
    return (path_ / name).string();
  }
  std::string string() const { return path_.string(); }

 private:
  fs::path path_;
};

std::vector<std::string> marked(std::vector<const char*> words) {
  CLI::App app("", "shp");
  CLI::App* run = app.add_subcommand("run");
  std::string text;
  bool flag = false;
  run->add_option("-o,--output-dir", text);
  run->add_flag("-q,--quiet", flag);
  app.add_subcommand("export");
  words.insert(words.begin(), "shp");
  auto last_first =
      shp::marked_arguments(app, static_cast<int>(words.size()), words.data());
  return {last_first.rbegin(), last_first.rend()};
}

using Words = std::vector<std::string>;

shp::HostFile host_file(const std::string& path, int64_t spans) {
  shp::HostFile file{path, {}};
  file.metadata.pid = 7;
  file.metadata.argv = {"/usr/bin/python3", "app.py"};
  file.metadata.written_spans = spans;
  file.metadata.complete = true;
  return file;
}

}  // namespace

TEST_CASE("our library is preloaded alone when the user preloads nothing") {
  CHECK(shp::preload_value("", kLibrary) == kLibrary);
}

TEST_CASE("the user's libraries follow ours, whatever separates them") {
  CHECK(shp::preload_value("/a.so  b.so::c.so", kLibrary) ==
        "/opt/shp/libshp.so:/a.so:b.so:c.so");
}

TEST_CASE("sanitizer runtimes stay first") {
  CHECK(shp::preload_value("/l/jemalloc.so:/usr/lib/libasan.so.8", kLibrary) ==
        "/usr/lib/libasan.so.8:/opt/shp/libshp.so:/l/jemalloc.so");
  CHECK(shp::preload_value("libtsan.so.2", kLibrary) ==
        "libtsan.so.2:/opt/shp/libshp.so");
}

TEST_CASE("a second shp run does not preload twice") {
  CHECK(shp::preload_value("/old/libshp.so:/a.so", kLibrary) ==
        "/opt/shp/libshp.so:/a.so");
}

TEST_CASE("variables are replaced and the others kept as they are") {
  const char* const current[] = {"A=1", "AB=2", "odd", "B=x=y", nullptr};
  CHECK(shp::with_variables(current, {{"A", "new"}, {"C", ""}}) ==
        shp::Environment{"AB=2", "odd", "B=x=y", "A=new", "C="});
}

TEST_CASE("the command begins at the first word that is no option of ours") {
  CHECK(marked({"run", "-o", "out", "-q", "cmd", "-o", "x"}) ==
        Words{"run", "-o", "out", "-q", "--", "cmd", "-o", "x"});
  CHECK(marked({"run", "--output-dir=out", "cmd"}) ==
        Words{"run", "--output-dir=out", "--", "cmd"});
  CHECK(marked({"run", "-oout", "cmd", "--", "x"}) ==
        Words{"run", "-oout", "--", "cmd", "--", "x"});
}

TEST_CASE("a command that is marked, absent or of another verb is left alone") {
  CHECK(marked({"run", "-o", "out", "--", "cmd"}) ==
        Words{"run", "-o", "out", "--", "cmd"});
  CHECK(marked({"run", "-o"}) == Words{"run", "-o"});
  CHECK(marked({"export", "a", "-o", "b"}) == Words{"export", "a", "-o", "b"});
  CHECK(marked({}).empty());
}

TEST_CASE("the parts are found in a build tree and in an installation") {
  const Folder folder;
  const std::string built = folder.write("build/preload/libshp.so", "");
  const std::string shpd = folder.write("build/daemon/shpd", "");
  CHECK(shp::find_library(folder.string() + "/build/cli").value() == built);
  CHECK(shp::find_daemon(folder.string() + "/build/cli").value() == shpd);
  const std::string installed =
      folder.write("usr/lib/x86_64-linux-gnu/libshp.so", "");
  const std::string beside = folder.write("usr/bin/shpd", "");
  CHECK(shp::find_library(folder.string() + "/usr/bin").value() == installed);
  CHECK(shp::find_daemon(folder.string() + "/usr/bin").value() == beside);
}

TEST_CASE("a part that is nowhere is an error that says where was looked") {
  const Folder folder;
  const auto found = shp::find_daemon(folder.string());
  REQUIRE(!found);
  CHECK(found.error().message.find(folder.string() + "/shpd") !=
        std::string::npos);
  CHECK(found.error().message.find("SHP_DAEMON") != std::string::npos);
}

TEST_CASE("a capture knows what is new, and pending from closed") {
  const Folder folder;
  folder.write("old.jsonl", "");
  folder.write("old.jsonl.pending", "");
  const shp::Capture capture(folder.string());
  const std::string closed = folder.write("HOST_TRACE/new.jsonl", "");
  const std::string pending = folder.write("new.jsonl.pending", "");
  const std::string trace = folder.write("t/1.pt.trace.json.gz", "");
  folder.write("notes.json", "");
  CHECK(capture.closed() == Words{closed});
  CHECK(capture.pending() == Words{pending});
  CHECK(capture.traces() == Words{trace});
}

TEST_CASE("a daemon's answer is read as far as it is understood") {
  const auto status = shp::parse_status(
      R"({"version":"9","pid":3,"more":[1],"sessions":[7,)"
      R"({"pid":5,"host_pid":55,"directory":"/d","state":"recording","written_spans":9}]})");
  REQUIRE(status);
  CHECK(status->version == "9");
  REQUIRE(status->sessions.size() == 1);
  CHECK(status->sessions[0].pid == 55);
  CHECK(status->sessions[0].directory == "/d");
  CHECK(status->sessions[0].spans == 9);
  CHECK(status->sessions[0].file.empty());
  CHECK(!shp::parse_status("nothing"));
}

TEST_CASE("a script is followed to its interpreter, a text to nothing") {
  const Folder folder;
  folder.write("bin/static",
               std::string("\177ELF\2\1\1") + std::string(57, '\0'));
  folder.write("bin/script", "#!/usr/bin/env -S static -x\n");
  folder.write("bin/text", "hello");
  const std::string path = "/nowhere:" + folder.string() + "/bin";
  CHECK(shp::why_not_preloaded("script", path).find("statically linked") !=
        std::string::npos);
  CHECK(shp::why_not_preloaded("text", path).empty());
  CHECK(shp::why_not_preloaded("not there", path).empty());
  CHECK(shp::why_not_preloaded("/bin/sh", "").empty());
}

TEST_CASE("a 32-bit program is told apart") {
  const Folder folder;
  const std::string program =
      folder.write("p", std::string("\177ELF\1\1\1") + std::string(57, '\0'));
  CHECK(shp::why_not_preloaded(program, "").find("32-bit") !=
        std::string::npos);
}

TEST_CASE("numbers are grouped by thousands") {
  CHECK(shp::with_commas(0) == "0");
  CHECK(shp::with_commas(999) == "999");
  CHECK(shp::with_commas(1000) == "1,000");
  CHECK(shp::with_commas(1234567) == "1,234,567");
}

TEST_CASE("a word is quoted for the shell only where it must be") {
  CHECK(shp::shell_word("out/a-1.jsonl") == "out/a-1.jsonl");
  CHECK(shp::shell_word("a b") == "'a b'");
  CHECK(shp::shell_word("it's") == "'it'\\''s'");
  CHECK(shp::shell_word("") == "''");
}

TEST_CASE("the report names files, spans, losses and the next command") {
  shp::RunOutcome outcome;
  outcome.directory = "out";
  outcome.files = {host_file("out/a.jsonl", 1200),
                   host_file("out/b.jsonl", 34)};
  outcome.files[1].metadata.complete = false;
  outcome.files[1].metadata.end_reason = "killed";
  outcome.files[1].metadata.dropped_spans = 2;
  outcome.files[1].metadata.dropped = {{"unfinished", 2}};
  const std::string text = shp::report(outcome);
  CHECK(text.find("recorded 1,234 spans in 2 files in out: 2 spans lost: "
                  "2 unfinished\n") != std::string::npos);
  CHECK(text.find("pid 7       python3 app.py  (killed)\n") !=
        std::string::npos);
  CHECK(text.find("next: shp export out/*.jsonl -o out/host.json.gz\n") !=
        std::string::npos);
}

TEST_CASE("with Torch traces in the directory the next command merges") {
  shp::RunOutcome outcome;
  outcome.directory = "my out";
  outcome.files = {host_file("my out/a.jsonl", 1)};
  outcome.traces = {"my out/1.pt.trace.json"};
  const std::string text = shp::report(outcome);
  CHECK(text.find("next: shp merge-dir 'my out' --torch-dir 'my out'\n") !=
        std::string::npos);
  CHECK(text.find("1 span in 1 file in my out: nothing lost") !=
        std::string::npos);
}

TEST_CASE("nothing recorded is said in one line with its reason") {
  shp::RunOutcome outcome;
  outcome.directory = "out";
  outcome.why_nothing = "/x: it is statically linked";
  CHECK(shp::report(outcome) ==
        "shp run: nothing was recorded: /x: it is statically linked\n");
  outcome.still_recording = {4, 5};
  CHECK(shp::report(outcome).find("pid 4, 5;") != std::string::npos);
}
