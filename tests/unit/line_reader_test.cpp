#include "common/jsonl/line_reader.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

using namespace shp;

namespace {

std::string metadata(int64_t written, const std::string& more = "") {
  return R"({"type":"metadata","schema_version":3,"session_id":"s","pid":7,)"
         R"("hostname":"h","clock":"monotonic","start_monotonic_ns":100,)"
         R"("start_realtime_ns":5000,"clock_uncertainty_ns":4,)"
         R"("written_spans":)" +
         std::to_string(written) +
         R"(,"dropped_spans":0,"stop_monotonic_ns":200,)"
         R"("stop_realtime_ns":5100,"complete":true)" +
         more + "}\n";
}

std::string span(int64_t id,
                 int64_t start,
                 int64_t duration,
                 const std::string& args = "{}") {
  return R"({"type":"span","id":)" + std::to_string(id) +
         R"(,"pid":7,"tid":8,"name":"step","start_ns":)" +
         std::to_string(start) + R"(,"duration_ns":)" +
         std::to_string(duration) + R"(,"args":)" + args + "}\n";
}

UniqueFd file_of(const std::string& text) {
  UniqueFd fd(memfd_create("host", MFD_CLOEXEC));
  REQUIRE(write(fd.get(), text.data(), text.size()) ==
          static_cast<ssize_t>(text.size()));
  REQUIRE(lseek(fd.get(), 0, SEEK_SET) == 0);
  return fd;
}

// All spans as "id name start+duration args", then the error if there is one.
std::vector<std::string> read_all(const std::string& text) {
  std::vector<std::string> out;
  Result<LineReader> reader = open_host_file(file_of(text), "f");
  if (!reader) {
    return {reader.error().message};
  }
  HostSpan one;
  while (true) {
    const Result<bool> got = reader->next(one);
    if (!got) {
      out.push_back(got.error().message);
      return out;
    }
    if (!*got) {
      return out;
    }
    out.push_back(std::to_string(one.id) + " " + std::string(one.name) + " " +
                  std::to_string(one.start_ns) + "+" +
                  std::to_string(one.duration_ns) + " " +
                  std::string(one.args));
  }
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("spans come as they are written") {
  CHECK(read_all(metadata(2) + span(1, 100, 0) +
                 span(2, 110, 90, R"({"k":[1,"x"]})")) ==
        Lines{R"(1 "step" 100+0 {})", R"(2 "step" 110+90 {"k":[1,"x"]})"});
}

TEST_CASE("any spelling of the same JSON is taken, and unknown keys skipped") {
  CHECK(read_all(metadata(1) +
                 R"( { "args" : {} , "name":"a","new":[{}],"type":"span",)"
                 R"("duration_ns":1,"start_ns":120,"tid":8,"pid":7,"id":1})"
                 "\r\n") == Lines{R"(1 "a" 120+1 {})"});
}

TEST_CASE("the last line need not end in a newline") {
  std::string text = metadata(1) + span(1, 100, 1);
  text.pop_back();
  CHECK(read_all(text).size() == 1);
}

TEST_CASE("unknown line types are skipped and known ones kept") {
  Result<LineReader> reader = open_host_file(
      file_of(metadata(1, R"(,"boot_id":"b","argv":["py","x.py"])") +
              R"({"type":"weather","sun":true})"
              "\n" +
              R"({"type":"thread","tid":8,"name":"w\u00e4"})"
              "\n" +
              R"({"type":"clock","monotonic_ns":150,"realtime_ns":5050,)"
              R"("monotonic_raw_ns":149,"ticks":1,"uncertainty_ns":3})"
              "\n" +
              span(1, 150, 1) +
              R"({"type":"open_span","tid":8,"name":"o","start_ns":160})"
              "\n"),
      "f");
  REQUIRE(reader);
  HostSpan one;
  CHECK(*reader->next(one));
  CHECK_FALSE(*reader->next(one));
  CHECK(reader->metadata().boot_id == "b");
  CHECK(reader->metadata().argv == Lines{"py", "x.py"});
  CHECK(reader->thread_names().at(8) == "w\xc3\xa4");
  REQUIRE(reader->clocks().size() == 1);
  CHECK(reader->clocks()[0].realtime_ns == 5050);
  CHECK(reader->clocks()[0].monotonic_raw_ns == 149);
  REQUIRE(reader->open_spans().size() == 1);
  CHECK(reader->open_spans()[0].name == "\"o\"");
}

TEST_CASE("a wrong span is one error with its line") {
  const std::string good = span(1, 100, 1);
  const struct {
    std::string line;
    const char* error;
  } table[] = {
      {span(1, 101, 1), "f: line 3: span id 1 is there twice"},
      {span(0, 101, 1), "f: line 3: span id 0 is not positive"},
      {span(2, 101, -1), "f: line 3: span ends before it starts"},
      {span(2, 99, 1), "f: line 3: span is not within the session"},
      {span(2, 150, 51), "f: line 3: span is not within the session"},
      {span(2, 150, INT64_MAX), "f: line 3: span is not within the session"},
      {R"({"type":"span","id":2,"pid":9,"tid":8,"name":"a","start_ns":100,)"
       R"("duration_ns":1,"args":{}})",
       "f: line 3: pid 9 is not the metadata's 7"},
      {R"({"type":"span","id":2,"pid":7,"tid":8,"name":"","start_ns":100,)"
       R"("duration_ns":1,"args":{}})",
       "f: line 3: name is empty or holds NUL"},
      {R"({"type":"span","id":2,"pid":7,"tid":8,"name":"a\u0000","start_ns":1)"
       R"(00,"duration_ns":1,"args":{}})",
       "f: line 3: name is empty or holds NUL"},
      {R"({"type":"span","id":2.0,"pid":7,"tid":8,"name":"a","start_ns":100,)"
       R"("duration_ns":1,"args":{}})",
       "f: line 3: id is not an integer of 64 bits"},
      {R"({"type":"span","id":2,"pid":7,"tid":8,"name":5,"start_ns":100,)"
       R"("duration_ns":1,"args":{}})",
       "f: line 3: name is not a string"},
      {R"({"type":"span","id":2,"pid":7,"tid":8,"name":"a","start_ns":100,)"
       R"("duration_ns":1,"args":[]})",
       "f: line 3: args is not an object"},
      {R"({"type":"span","id":2,"pid":7,"tid":8,"name":"a","start_ns":100,)"
       R"("duration_ns":1})",
       "f: line 3: span has no \"args\""},
      {R"({"type":"span","id":2,"pid":7,"tid":8,"name":"a","start_ns":100,)"
       R"("duration_ns":1,"args":{"x":NaN}})",
       "f: line 3: is not whole JSON (cut off?)"},
      {R"({"type":"span","id":2,"pid)",
       "f: line 3: is not whole JSON (cut off?)"},
      {"\n", "f: line 3: is not JSON"},
      {"[]\n" + span(2, 100, 1), ""},
      {metadata(1), "f: line 3: second metadata line"},
  };
  for (const auto& row : table) {
    CAPTURE(row.line);
    const Lines got = read_all(metadata(2) + good + row.line);
    REQUIRE(got.size() == 2);
    if (row.error[0] != '\0') {
      CHECK(got[1] == row.error);
    }
  }
}

TEST_CASE("a backslash before u0000 is no NUL") {
  CHECK(read_all(metadata(1) +
                 R"({"type":"span","id":1,"pid":7,"tid":8,"name":"\\u0000",)"
                 R"("start_ns":100,"duration_ns":1,"args":{}})")
            .size() == 1);
}

TEST_CASE("counts that do not match are an error at the end") {
  const Lines fewer = read_all(metadata(3) + span(1, 100, 1));
  CHECK(fewer.back() ==
        "f: holds 1 spans, its metadata says 3 (cut off or edited)");
  const Lines more = read_all(metadata(0) + span(1, 100, 1));
  CHECK(more.back() ==
        "f: holds 1 spans, its metadata says 0 (cut off or edited)");
}

TEST_CASE("ids may come in any order, each once") {
  CHECK(read_all(metadata(4) + span(3, 100, 1) + span(1, 100, 1) +
                 span(2, 100, 1) + span(9, 100, 1))
            .size() == 4);
  for (int64_t again : {1, 2, 3, 9}) {
    CHECK(read_all(metadata(5) + span(3, 100, 1) + span(1, 100, 1) +
                   span(2, 100, 1) + span(9, 100, 1) + span(again, 100, 1))
              .back() ==
          "f: line 6: span id " + std::to_string(again) + " is there twice");
  }
}

TEST_CASE("metadata must have its keys, of their types") {
  const std::string whole = metadata(0);
  for (const char* key : {"schema_version",
                          "session_id",
                          "pid",
                          "hostname",
                          "clock",
                          "start_monotonic_ns",
                          "start_realtime_ns",
                          "clock_uncertainty_ns",
                          "written_spans",
                          "dropped_spans",
                          "stop_monotonic_ns",
                          "stop_realtime_ns",
                          "complete"}) {
    CAPTURE(key);
    std::string renamed = whole;
    renamed.replace(renamed.find(key), 1, "X");
    CHECK(read_all(renamed) ==
          Lines{"f: line 1: metadata has no \"" + std::string(key) + "\""});
  }
  const auto with = [&](const char* from, const char* to) {
    std::string text = whole;
    text.replace(text.find(from), std::string(from).size(), to);
    return read_all(text);
  };
  CHECK(with(R"("schema_version":3)", R"("schema_version":2)") ==
        Lines{"f: line 1: metadata: schema_version is not 3"});
  CHECK(with("\"s\"", "\"\"") ==
        Lines{"f: line 1: metadata: session_id is empty"});
  CHECK(with("true", "1") ==
        Lines{"f: line 1: metadata: complete is not true or false"});
  CHECK(with("\"monotonic\"", "\"boottime\"") ==
        Lines{"f: line 1: metadata: clock is not \"monotonic\""});
  CHECK(with("\"stop_monotonic_ns\":200", "\"stop_monotonic_ns\":99") ==
        Lines{"f: line 1: metadata: stop_monotonic_ns is before "
              "start_monotonic_ns"});
  CHECK(with("\"clock_uncertainty_ns\":4", "\"clock_uncertainty_ns\":-4") ==
        Lines{"f: line 1: metadata: clock_uncertainty_ns is negative"});
}

TEST_CASE("what is no host file says so") {
  CHECK(read_all("") == Lines{"f: is empty"});
  CHECK(read_all("{}") == Lines{"f: line 1: is not a host file's metadata"});
  CHECK(read_all("\x1f\x8b\x08") ==
        Lines{"f: line 1: is not a host file's metadata"});
  CHECK(open_host_file("/nowhere/f.jsonl").error().message ==
        "/nowhere/f.jsonl: No such file or directory");
}

TEST_CASE("lines longer than the buffer are read, endless ones refused") {
  const std::string args = R"({"x":")" + std::string(3'000'000, 'a') + R"("})";
  CHECK(
      read_all(metadata(2) + span(1, 100, 1, args) + span(2, 100, 1)).size() ==
      2);
  CHECK(read_all(metadata(1) + std::string(18'000'000, ' ')) ==
        Lines{"f: line 2: longer than 16 MiB"});
}

std::string mark(const std::string& type,
                 int64_t time,
                 const std::string& args,
                 const std::string& owner = R"("pid":7,"tid":8)") {
  return R"({"type":")" + type + "\"," + owner + R"(,"name":"m","time_ns":)" +
         std::to_string(time) + R"(,"args":)" + args + "}\n";
}

std::string counts(int instants, int counters) {
  return R"(,"written_instants":)" + std::to_string(instants) +
         R"(,"written_counters":)" + std::to_string(counters);
}

const std::string kMarked =
    metadata(1, counts(1, 2)) + mark("instant", 110, R"({"a":[]})") +
    span(1, 120, 5) + mark("counter", 130, R"({"value":1.5})") +
    mark("counter", 140, R"({"a":1,"b":-2e3})");

TEST_CASE("spans and marks of a file are read apart, each checked") {
  CHECK(read_all(kMarked) == Lines{"1 \"step\" 120+5 {}"});
  Result<LineReader> reader = open_host_file(file_of(kMarked), "f");
  REQUIRE(reader);
  CHECK(reader->metadata().has_marks());
  reader->give_marks();
  HostSpan one;
  Lines seen;
  Result<bool> got = reader->next(one);
  for (; got && *got; got = reader->next(one)) {
    seen.push_back((one.item == HostItem::kCounter ? "c" : "i") +
                   std::to_string(one.start_ns) + std::string(one.args));
  }
  CHECK(got);
  CHECK(seen == Lines{R"(i110{"a":[]})",
                      R"(c130{"value":1.5})",
                      R"(c140{"a":1,"b":-2e3})"});
}

TEST_CASE("a mark that cannot be is said with its line") {
  const auto problem = [](const std::string& line) {
    return read_all(metadata(0) + line).back();
  };
  CHECK(problem(mark("instant", 99, "{}")) ==
        "f: line 2: mark is not within the session");
  CHECK(problem(mark("instant", 201, "{}")) ==
        "f: line 2: mark is not within the session");
  CHECK(problem(mark("counter", 110, "{}")) ==
        "f: line 2: counter whose args are not numbers");
  CHECK(problem(mark("counter", 110, R"({"a":"1"})")) ==
        "f: line 2: counter whose args are not numbers");
  CHECK(problem(mark("instant", 110, "[]")) ==
        "f: line 2: instant without a name and args");
  CHECK(problem(mark("instant", 110, "{}", R"("pid":9,"tid":8)")) ==
        "f: line 2: pid 9 is not the metadata's 7");
  CHECK(problem(mark("instant", 110, "{}", R"("pid":7)")) ==
        "f: line 2: instant without pid, tid and time_ns");
}

TEST_CASE("marks are as many as line 1 says, where it says so") {
  const std::string one = mark("instant", 110, "{}");
  CHECK(read_all(metadata(0) + one) == Lines{});
  CHECK(read_all(metadata(0, counts(2, 0)) + one) ==
        Lines{"f: holds 1 instants, its metadata says 2 (cut off or edited)"});
  CHECK(read_all(metadata(0, counts(1, 1)) + one) ==
        Lines{"f: holds 0 counter values, its metadata says 1 (cut off or "
              "edited)"});
  CHECK(read_all(metadata(0, counts(-1, 0)) + one) ==
        Lines{"f: line 1: metadata: written_instants is negative"});
}
