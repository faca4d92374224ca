#include "common/jsonl/line_writer.h"

#include <doctest/doctest.h>

#include <string>

namespace shp {
namespace {

class StringSink : public LineSink {
 public:
  bool write(std::string_view bytes) override {
    if (fails) {
      return false;
    }
    text += bytes;
    return true;
  }
  std::string text;
  bool fails = false;
};

std::string name_text(std::string_view name) {
  std::string out;
  append_span_name_text(name, &out);
  return out;
}

TEST_CASE("a span line is the predecessor's, byte for byte") {
  StringSink sink;
  LineWriter writer(sink);
  writer.span(span_thread_text(7, 8), name_text("step"), {10, 5});
  REQUIRE(writer.flush());
  CHECK(sink.text ==
        "{\"type\":\"span\",\"id\":1,\"pid\":7,\"tid\":8,\"name\":\"step\","
        "\"start_ns\":10,\"duration_ns\":5,\"args\":{}}\n");
  CHECK(writer.spans() == 1);
}

TEST_CASE("args of a client go in without white space, or not at all") {
  StringSink sink;
  LineWriter writer(sink);
  const ThreadText thread = span_thread_text(1, 1);
  CHECK(writer.span(thread, name_text("a"), {0, 0}, "{\"k\": [1, 2]}"));
  CHECK_FALSE(writer.span(thread, name_text("a"), {0, 0}, "{\"k\":\n"));
  REQUIRE(writer.flush());
  CHECK(sink.text ==
        "{\"type\":\"span\",\"id\":1,\"pid\":1,\"tid\":1,\"name\":\"a\","
        "\"start_ns\":0,\"duration_ns\":0,\"args\":{\"k\":[1,2]}}\n"
        "{\"type\":\"span\",\"id\":2,\"pid\":1,\"tid\":1,\"name\":\"a\","
        "\"start_ns\":0,\"duration_ns\":0,\"args\":{}}\n");
}

TEST_CASE("ids count 1, 2, 3 … past every new digit") {
  StringSink sink;
  LineWriter writer(sink);
  const ThreadText thread = span_thread_text(1, 1);
  const std::string name = name_text("n");
  for (int i = 0; i < 100'001; ++i) {
    writer.span(thread, name, {0, 0});
  }
  REQUIRE(writer.flush());
  size_t at = 0;
  bool right = true;
  for (int i = 1; i <= 100'001; ++i) {
    const std::string start =
        "{\"type\":\"span\",\"id\":" + std::to_string(i) + ",\"pid\":1,";
    right = right && sink.text.compare(at, start.size(), start) == 0;
    at = sink.text.find('\n', at) + 1;
  }
  CHECK(right);
  CHECK(at == sink.text.size());
}

TEST_CASE("numbers of every length keep their digits") {
  StringSink sink;
  LineWriter writer(sink);
  const ThreadText thread = span_thread_text(INT32_MAX, UINT32_MAX);
  writer.span(thread, name_text("n"), {INT64_MAX, INT64_MAX});
  REQUIRE(writer.flush());
  CHECK(sink.text ==
        "{\"type\":\"span\",\"id\":1,\"pid\":2147483647,\"tid\":4294967295,"
        "\"name\":\"n\",\"start_ns\":9223372036854775807,"
        "\"duration_ns\":9223372036854775807,\"args\":{}}\n");
}

TEST_CASE("names and args larger than the buffer go through it in pieces") {
  StringSink sink;
  LineWriter writer(sink);
  const std::string name(LineWriter::kBufferBytes * 3, 'n');
  const std::string value(LineWriter::kBufferBytes * 2, 'v');
  const ThreadText thread = span_thread_text(1, 1);
  writer.span(thread, name_text(name), {1, 2});
  CHECK(
      writer.span(thread, name_text("x"), {3, 4}, "{\"a\":\"" + value + "\"}"));
  REQUIRE(writer.flush());
  const std::string expected =
      "{\"type\":\"span\",\"id\":1,\"pid\":1,\"tid\":1,\"name\":\"" + name +
      "\",\"start_ns\":1,\"duration_ns\":2,\"args\":{}}\n"
      "{\"type\":\"span\",\"id\":2,\"pid\":1,\"tid\":1,\"name\":\"x\","
      "\"start_ns\":3,\"duration_ns\":4,\"args\":{\"a\":\"" +
      value + "\"}}\n";
  CHECK((sink.text == expected));
}

TEST_CASE("the other lines are as span_format.h says") {
  StringSink sink;
  LineWriter writer(sink);
  writer.thread(7, "wor\"ker");
  ClockSample sample;
  sample.monotonic_ns = 1;
  sample.realtime_ns = 2;
  sample.monotonic_raw_ns = 3;
  sample.ticks = 4;
  sample.uncertainty_ns = 5;
  writer.clock(sample);
  writer.open_span(7, name_text("step"), 10);
  REQUIRE(writer.flush());
  CHECK(sink.text ==
        "{\"type\":\"thread\",\"tid\":7,\"name\":\"wor\\\"ker\"}\n"
        "{\"type\":\"clock\",\"monotonic_ns\":1,\"realtime_ns\":2,"
        "\"monotonic_raw_ns\":3,\"ticks\":4,\"uncertainty_ns\":5}\n"
        "{\"type\":\"open_span\",\"tid\":7,\"name\":\"step\","
        "\"start_ns\":10}\n");
}

TEST_CASE("a sink that fails makes the writer drop the rest and say so") {
  StringSink sink;
  LineWriter writer(sink);
  writer.span(span_thread_text(1, 1), name_text("a"), {0, 0});
  sink.fails = true;
  CHECK_FALSE(writer.flush());
  sink.fails = false;
  writer.span(span_thread_text(1, 1), name_text("a"), {0, 0});
  CHECK_FALSE(writer.flush());
  CHECK(writer.failed());
  CHECK(sink.text.empty());
}

HostFileMetadata small_metadata() {
  HostFileMetadata m;
  m.session_id = "s";
  m.pid = 7;
  m.hostname = "h";
  m.start.monotonic_ns = 1100;
  m.start.realtime_ns = 5050;
  m.start.monotonic_raw_ns = 2050;
  m.start.uncertainty_ns = 100;
  m.start.ticks = 11;
  m.stop.monotonic_ns = 9000;
  m.stop.realtime_ns = 13'000;
  m.stop.monotonic_raw_ns = 10'000;
  m.stop.uncertainty_ns = 40;
  m.stop.ticks = 12;
  m.clock_kind = ClockKind::kTsc;
  m.written_spans = 3;
  m.written_instants = 4;
  m.written_counters = 5;
  m.dropped_marks = 6;
  m.dropped.unfinished = 1;
  m.dropped.outside = 2;
  m.complete = true;
  m.end_reason = "stop";
  m.argv = std::string("a\0b c\0", 6);
  m.ppid = 2;
  m.host_pid = 8;
  m.uid = 9;
  m.pid_namespace = 10;
  m.boot_id = "boot";
  return m;
}

TEST_CASE("the metadata line holds every key, and the brackets' right ends") {
  const std::string line = metadata_line(small_metadata(), {});
  REQUIRE(line.size() == kMetadataLineBytes);
  const std::string expected =
      "{\"type\":\"metadata\",\"schema_version\":3,\"session_id\":\"s\","
      "\"pid\":7,\"hostname\":\"h\",\"clock\":\"monotonic\","
      // 1100 - 100; 5050 - 50
      "\"start_monotonic_ns\":1000,\"start_realtime_ns\":5000,"
      "\"clock_uncertainty_ns\":100,\"written_spans\":3,\"dropped_spans\":3,"
      // 9000; 13000 - 20
      "\"stop_monotonic_ns\":9000,\"stop_realtime_ns\":12980,"
      "\"complete\":true,\"writer\":\"shp " SHP_VERSION
      "\",\"start_monotonic_raw_ns\":2000,\"stop_monotonic_raw_ns\":9980,"
      "\"start_ticks\":11,\"stop_ticks\":12,\"clock_kind\":\"tsc\","
      "\"written_instants\":4,\"written_counters\":5,\"dropped_marks\":6,"
      "\"dropped\":{\"unfinished\":1,\"overflow\":0,\"outside\":2,"
      "\"bad_name\":0,\"reentrant\":0,\"no_ring\":0},\"bad_args\":0,"
      "\"names_lost\":0,\"end_reason\":\"stop\",\"ppid\":2,\"host_pid\":8,"
      "\"uid\":9,\"pid_namespace\":10,\"boot_id\":\"boot\","
      "\"argv\":[\"a\",\"b c\"]}";
  CHECK(line.substr(0, expected.size()) == expected);
  CHECK(line.find_first_not_of(' ', expected.size()) == kMetadataLineBytes - 1);
  CHECK(line.back() == '\n');
}

TEST_CASE("an exit code, a signal and broken rings stand there when known") {
  HostFileMetadata m = small_metadata();
  m.exit_signal = 9;
  m.broken_rings = 1;
  std::string line = metadata_line(m, {});
  CHECK(line.find("\"exit_signal\":9") != std::string::npos);
  CHECK(line.find("\"broken_rings\":1") != std::string::npos);
  CHECK(line.find("exit_code") == std::string::npos);
  m.exit_signal = -1;
  m.exit_code = 0;
  line = metadata_line(m, {});
  CHECK(line.find("\"exit_code\":0") != std::string::npos);
}

TEST_CASE("argv and open spans are cut to what the line can hold") {
  HostFileMetadata m = small_metadata();
  m.session_id = std::string(kMaxSessionIdBytes, '\x01');
  m.hostname = std::string(kMaxHostnameBytes, '\x01');
  m.argv.clear();
  for (int i = 0; i < 5000; ++i) {
    m.argv += "argument";
    m.argv += '\0';
  }
  std::vector<OpenSpanEntry> open;
  for (int i = 0; i < 5000; ++i) {
    open.push_back({7, name_text("open"), i});
  }
  const std::string line = metadata_line(m, open);
  CHECK(line.size() == kMetadataLineBytes);
  CHECK(line.find("\"argv\":[\"argument\",") != std::string::npos);
  CHECK(line.find("\"open_spans\":[{\"tid\":7,\"name\":\"open\","
                  "\"start_ns\":0},") != std::string::npos);
  CHECK(line.find("}]}") != std::string::npos);
}

TEST_CASE("marks are lines of their own, counted apart from spans") {
  StringSink sink;
  LineWriter writer(sink);
  const ThreadText thread = span_thread_text(7, 8);
  CHECK(writer.instant(thread, name_text("oom"), 10, {}));
  CHECK(writer.instant(thread, name_text("oom"), 11, "{ \"n\": 1 }"));
  CHECK_FALSE(writer.instant(thread, name_text("oom"), 12, "!"));
  writer.counter(thread, name_text("queue"), 13, 3);
  writer.counter(thread, name_text("queue"), 14, -0.5);
  REQUIRE(writer.flush());
  CHECK(sink.text ==
        "{\"type\":\"instant\",\"pid\":7,\"tid\":8,\"name\":\"oom\","
        "\"time_ns\":10,\"args\":{}}\n"
        "{\"type\":\"instant\",\"pid\":7,\"tid\":8,\"name\":\"oom\","
        "\"time_ns\":11,\"args\":{\"n\":1}}\n"
        "{\"type\":\"instant\",\"pid\":7,\"tid\":8,\"name\":\"oom\","
        "\"time_ns\":12,\"args\":{}}\n"
        "{\"type\":\"counter\",\"pid\":7,\"tid\":8,\"name\":\"queue\","
        "\"time_ns\":13,\"args\":{\"value\":3}}\n"
        "{\"type\":\"counter\",\"pid\":7,\"tid\":8,\"name\":\"queue\","
        "\"time_ns\":14,\"args\":{\"value\":-0.5}}\n");
  CHECK(writer.spans() == 0);
  CHECK(writer.instants() == 3);
  CHECK(writer.counters() == 2);
}

}  // namespace
}  // namespace shp
