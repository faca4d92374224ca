#include "cli/trace/scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "cli/trace/classify.h"

using namespace shp;

namespace {

// Gives a text in pieces of `step` bytes, so that every place is a border once.
class TextSource : public ByteSource {
 public:
  TextSource(std::string_view text, size_t step) : text_(text), step_(step) {}
  Result<size_t> read(char* into, size_t size) override {
    const size_t some = std::min({size, step_, text_.size()});
    std::memcpy(into, text_.data(), some);
    text_.remove_prefix(some);
    return some;
  }

 private:
  std::string_view text_;
  size_t step_;
};

Result<TraceScan> scan(std::string_view text, size_t step = 1U << 20) {
  TextSource source(text, step);
  return scan_trace(source);
}

std::string why_not(std::string_view text) {
  const Result<TraceScan> scanned = scan(text);
  return scanned ? scanned->not_a_trace : scanned.error().message;
}

const TraceProcess& process(const TraceScan& scanned, std::string_view token) {
  for (const TraceProcess& one : scanned.processes) {
    if (one.pid_token == token) {
      return one;
    }
  }
  FAIL("no process " << token);
  return scanned.processes.front();
}

const std::string kTrace =
    R"({"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":3},)"
    R"("host_name":"node7","traceEvents":[)"
    R"({"ph":"M","name":"process_labels","pid":5,"tid":0,"ts":1,)"
    R"("args":{"labels":"CPU"}},)"
    R"({"ph":"M","name":"process_labels","pid":0,"tid":0,)"
    R"("args":{"labels":"GPU 0"}},)"
    R"({"ph":"M","name":"thread_sort_index","pid":5,"tid":6,)"
    R"("args":{"sort_index":60}},)"
    R"({"ph":"X","cat":"cpu_op","name":"a","pid":5,"tid":6,"ts":10.5,"dur":2},)"
    R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20,"dur":5.001},)"
    R"({"ph":"i","name":"Iteration Start: P","pid":"Traces","tid":"T","ts":9},)"
    R"({"ph":"i","name":"Record Window End","pid":"","tid":"","ts":30},)"
    R"({"ph":"s","cat":"ac2g","name":"ac2g","pid":5,"tid":6,"ts":999,"id":1})"
    "\n],\"traceName\":\"t\",\"baseTimeNanoseconds\":1000000000000000000}";

}  // namespace

TEST_CASE("a trace tells its processes, threads, window and both ends") {
  for (const size_t step : {size_t{1} << 20, size_t{1}, size_t{7}}) {
    CAPTURE(step);
    const Result<TraceScan> scanned = scan(kTrace, step);
    REQUIRE(scanned);
    CHECK(scanned->form == TraceForm::kObject);
    CHECK(scanned->bytes == kTrace.size());
    CHECK(scanned->base_ns == 1'000'000'000'000'000'000);
    CHECK(scanned->rank == 3);
    CHECK(scanned->host_name == "node7");
    CHECK(scanned->events == 8);
    CHECK(scanned->has_events);
    CHECK(scanned->insert_at == kTrace.find("\n],"));
    CHECK(scanned->own.empty());
    CHECK(process(*scanned, "5").labelled_cpu);
    CHECK_FALSE(process(*scanned, "5").labelled_gpu);
    CHECK(process(*scanned, "0").labelled_gpu);
    CHECK(process(*scanned, "5").host_events == 1);
    CHECK(process(*scanned, "5").window.begin == 10'500);
    CHECK(process(*scanned, "5").window.end == 12'500);
    CHECK(process(*scanned, "5").threads.at("6").sort_index == 60);
    CHECK(process(*scanned, "0").window.end == 25'001);
    CHECK_FALSE(process(*scanned, "\"Traces\"").pid);
    CHECK(scanned->iteration_start == 9'000);
    CHECK(scanned->window_end == 30'000);
  }
}

TEST_CASE("our earlier events are found with the commas that came with them") {
  const std::string ours = R"({"ph":"X","cat":"shp","name":"s","pid":5})";
  const std::string other = R"({"ph":"X","cat":"cpu_op","name":"a","pid":5})";
  const struct {
    std::string text;
    std::string without;
  } table[] = {
      {"[" + other + ",\n" + ours + ",\n" + ours + "\n]", "[" + other + "\n]"},
      {"[" + ours + ",\n" + ours + " \n]", "[ \n]"},
      {"[" + ours + ",\n" + other + "]", "[\n" + other + "]"},
      {"[" + other + "," + ours + " , " + other + "]",
       "[" + other + " , " + other + "]"},
      {"[" + other + " ," + ours + ",]", "[" + other + ",]"},
      {"[]", "[]"},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    const std::string text = "{\"traceEvents\":" + row.text + "}";
    const Result<TraceScan> scanned = scan(text, 3);
    REQUIRE(scanned);
    std::string left;
    uint64_t at = 0;
    for (const ByteRange& own : scanned->own) {
      left += text.substr(at, own.begin - at);
      at = own.end;
    }
    left += text.substr(at);
    CHECK(left == "{\"traceEvents\":" + row.without + "}");
  }
}

TEST_CASE("what viewers open is taken") {
  for (const char* text :
       {"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"\xff\x01\",\"pid\":1}]}",
        "{\"traceEvents\":[{\"ph\":\"X\",\"args\":{\"a\":inf,\"b\":NaN}},]}",
        "\xef\xbb\xbf[{\"ph\":\"X\",\"name\":\"C:\\q\"}]",
        " [ ] ",
        "{\"x\":{\"y\":[1,2]},\"traceEvents\":[],\"z\":inf}"}) {
    CAPTURE(text);
    CHECK(why_not(text).empty());
  }
}

TEST_CASE("other JSON is no trace, and says what it is") {
  CHECK(why_not("{\"schema\":1,\"nodes\":[]}") ==
        "is JSON without traceEvents");
  CHECK(why_not("{\"traceEvents\":{}}") == "traceEvents is not an array");
  CHECK(why_not("[[1,2],[3]]") ==
        "is a JSON array of other things than events");
  CHECK(why_not("[{\"a\":1}]") ==
        "is a JSON array whose objects have no \"ph\"");
  CHECK(why_not("hello") == "is not JSON");
}

TEST_CASE("a broken trace says at which byte") {
  CHECK(why_not("") == "byte 0: file is empty");
  CHECK(why_not("  ") == "byte 0: file is empty");
  CHECK(why_not("{\"traceEvents\":[{\"ph\":\"X\"}") ==
        "byte 26: file ends inside the events array (cut off?)");
  CHECK(why_not("{\"traceEvents\":[{\"ph\":\"X\",") ==
        "byte 26: file ends inside an event (cut off?)");
  CHECK(why_not("{\"traceEvents\":[{\"ph\":\"X\"}]") ==
        "byte 27: file ends inside the trace's object (cut off?)");
  CHECK(why_not("{\"traceEvents\":[{\"ph\":\"X\"} {\"ph\":\"X\"}]}") ==
        "byte 27: no comma after an event");
  CHECK(why_not("{\"traceEvents\":[{\"ph\":\"X\"},5]}") ==
        "byte 27: event does not start with \"{\"");
  CHECK(why_not("{\"traceEvents\":[],\"traceEvents\":[]}") ==
        "byte 32: traceEvents is there twice");
  CHECK(why_not("[{\"ph\":\"X\"}] x") == "byte 13: text after the trace's end");
  CHECK(why_not("{\"a\" 1}") == "byte 5: no colon after a member's name");
  CHECK(why_not("{\"a\":}") == "byte 5: member has no value");
}

TEST_CASE("every cut of a trace is an error and none a crash") {
  for (size_t length = 0; length < kTrace.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(scan(kTrace.substr(0, length), 5));
  }
}

TEST_CASE("strings and events longer than the window are passed over") {
  const std::string huge(20'000'000, 'x');
  const std::string text = "{\"note\":\"" + huge +
                           "\",\"traceEvents\":[{\"ph\":\"X\",\"pid\":1},"
                           "{\"ph\":\"X\",\"name\":\"" +
                           huge + "\\\"\"},{\"ph\":\"X\",\"pid\":2}]}";
  const Result<TraceScan> scanned = scan(text);
  REQUIRE(scanned);
  CHECK(scanned->events == 3);
  CHECK(scanned->processes.size() == 2);
  CHECK(scanned->bytes == text.size());
}

TEST_CASE("deep nesting needs no stack") {
  const std::string deep =
      std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(why_not("{\"traceEvents\":[{\"ph\":\"X\",\"args\":" + deep + "}]}")
            .empty());
}

TEST_CASE("the time base is decided by where the times are") {
  const auto decided = [](const char* ts, const char* tail) {
    const std::string text =
        std::string(R"({"traceEvents":[{"ph":"X","cat":"cpu_op","pid":5,)") +
        "\"tid\":5,\"ts\":" + ts + ",\"dur\":1}]" + tail + "}";
    return classify(*scan(text));
  };
  const char* base = ",\"baseTimeNanoseconds\":1000000000000000000";
  const TraceClass relative = decided("5000.5", base);
  CHECK(relative.base_known);
  CHECK(std::string(relative.kind) == "kineto base");
  CHECK(relative.window.begin == 1'000'000'000'005'000'500);
  CHECK(relative.style.base_ns == 1'000'000'000'000'000'000);
  CHECK(relative.style.grain_ns == 1);
  const TraceClass absolute = decided("1610366728298088", "");
  CHECK(absolute.base_known);
  CHECK(std::string(absolute.kind) == "kineto absolute");
  CHECK(absolute.window.begin == 1'610'366'728'298'088'000);
  CHECK(absolute.style.base_ns == 0);
  CHECK(absolute.style.grain_ns == 250);
  CHECK_FALSE(decided("5000.5", "").base_known);
  CHECK(decided("5000.5", "").base_reason ==
        "its times are relative and it has no baseTimeNanoseconds");
  CHECK_FALSE(decided("1610366728298088", base).base_known);
  CHECK_FALSE(decided("150000000000000", "").base_known);
  CHECK_FALSE(decided("5000.5", ",\"baseTimeNanoseconds\":1.5").base_known);
}

TEST_CASE("the host's process is known by label, else by categories") {
  const auto hosts = [](const std::string& events) {
    const Result<TraceScan> scanned =
        scan("{\"baseTimeNanoseconds\":7,\"traceEvents\":[" + events + "]}");
    std::vector<int64_t> pids;
    for (const size_t index : classify(*scanned).hosts) {
      pids.push_back(*scanned->processes[index].pid);
    }
    return pids;
  };
  const auto label = [](int pid, const char* text) {
    return R"({"ph":"M","name":"process_labels","pid":)" + std::to_string(pid) +
           R"(,"tid":0,"args":{"labels":")" + text + R"("}})";
  };
  const auto event = [](const char* cat, const char* pid) {
    return std::string(R"({"ph":"X","cat":")") + cat + R"(","pid":)" + pid +
           R"(,"tid":1,"ts":5,"dur":1})";
  };
  using Pids = std::vector<int64_t>;
  CHECK(hosts(label(9, "CPU") + "," + event("kernel", "0")) == Pids{9});
  CHECK(hosts(event("cuda_runtime", "9") + "," + event("kernel", "0")) ==
        Pids{9});
  // A worker in a container whose pid is a GPU's number as well.
  CHECK(hosts(label(3, "GPU 3") + "," + label(3, "CPU") + "," +
              event("cpu_op", "3")) == Pids{3});
  CHECK(hosts(event("cpu_op", "9") + "," + event("cpu_op", "9") + "," +
              event("user_annotation", "8")) == Pids{9, 8});
  CHECK(hosts(event("Operator", "\"12\"")) == Pids{12});
  CHECK(hosts(event("kernel", "0")).empty());
  CHECK(hosts(event("cpu_op", "-1")).empty());
}

TEST_CASE("files that are not to be touched are recognised") {
  const auto reason = [](const char* text) {
    return classify(*scan(text)).reason;
  };
  CHECK(reason(R"({"shpExport":"1","traceEvents":[{"ph":"X","pid":1}]})") ==
        "was made by shp export");
  CHECK(reason(R"({"traceEvents":[{"ph":"X","cat":"cpu_op","ts":1,)"
               R"("pid":"[TP00-DP00] 12"}]})") ==
        "has names for pids (merged already by another tool)");
  CHECK(reason(R"([{"ph":"X","name":"add","ts":1,"pid":"CPU functions"}])")
            .find("legacy autograd profiler") != std::string::npos);
  CHECK(reason("[]") == "is a trace without events");
  CHECK(reason(R"({"traceEvents":[{"ph":"X","cat":"shp","pid":1}]})") ==
        "is a trace without events");
}
