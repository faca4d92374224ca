#include "cli/trace/loose_json.h"

#include <doctest/doctest.h>

#include <string>

#include "cli/trace/event_fields.h"

using namespace shp;

namespace {

// Text with the padding that the searches may load.
struct Padded {
  explicit Padded(std::string_view content) : text(content) {
    text.append(64, '\0');
    begin = text.data();
    end = begin + content.size();
  }
  std::string text;
  const char* begin;
  const char* end;
};

// How many bytes of `text` the value at its start takes; -1: it does not end.
long value_length(std::string_view text) {
  const Padded padded(text);
  const char* at = skip_loose_value(padded.begin, padded.end);
  return at == nullptr ? -1 : at - padded.begin;
}

}  // namespace

TEST_CASE("values end where their quotes and brackets do") {
  CHECK(value_length("\"a\" ") == 3);
  CHECK(value_length("\"a\\\"b\",") == 6);
  CHECK(value_length("\"a\\\\\",") == 5);
  CHECK(value_length("\"a \x80\xff\n\",") == 7);
  CHECK(value_length("12.5,") == 4);
  CHECK(value_length("inf}") == 3);
  CHECK(value_length("{\"a\":[1,{\"]\":\"}\"}],\"b\":inf},") == 27);
  CHECK(value_length("[[[]]]]") == 6);
  CHECK(value_length(std::string(40, ' ').insert(0, "[").append("]x")) == 42);
}

TEST_CASE("a value that the text cuts off has no end") {
  for (const char* text :
       {"", "\"", "\"a\\\"", "\"a\\", "{", "{\"a\":\"}", "[[]", "12"}) {
    CAPTURE(text);
    CHECK(value_length(text) == -1);
  }
}

TEST_CASE("a quote behind the text does not end it") {
  // 16 bytes are loaded at once: what lies behind `end` must not count.
  std::string text = "\"abc";
  text += std::string("\"]}") + std::string(64, '\0');
  CHECK(skip_loose_value(text.data(), text.data() + 4) == nullptr);
  text = "[abc]" + std::string(64, '\0');
  CHECK(skip_loose_value(text.data(), text.data() + 4) == nullptr);
}

TEST_CASE("times are exact ns, whatever their spelling") {
  CHECK(loose_ns("5") == 5'000);
  CHECK(loose_ns("5.7") == 5'700);
  CHECK(loose_ns("5.007") == 5'007);
  CHECK(loose_ns("2234705626572.75") == 2'234'705'626'572'750);
  CHECK(loose_ns("\"1736408883688177.930\"") == 1'736'408'883'688'177'930);
  CHECK(loose_ns("1610366728298088") == 1'610'366'728'298'088'000);
  CHECK(loose_ns("0.0009") == 0);
  CHECK(loose_ns("1.2345678901234567890123") == 1'234);
  CHECK(loose_ns("-0.5") == -500);
  CHECK(loose_ns("1e3") == 1'000'000);
  CHECK(loose_ns("1.5E-1") == 150);
  CHECK(loose_ns("9223372036854775.807") == 9'223'372'036'854'775'807);
}

TEST_CASE("what is no time, or too large for one, is none") {
  for (const char* text : {"",
                           "\"\"",
                           "inf",
                           "nan",
                           "null",
                           "true",
                           "[1]",
                           "1x",
                           ".5",
                           "--1",
                           "1e",
                           "1e400",
                           "99999999999999999999",
                           "9223372036854775808",
                           "\"abc\"",
                           "1 2"}) {
    CAPTURE(text);
    CHECK_FALSE(loose_ns(text));
  }
}

TEST_CASE("members are found by name, at the object's own level") {
  const char* object =
      R"({"x":{"rank":1},"s":"\"rank\":2","rank" : 34 ,"z":0})";
  CHECK(loose_member(object, "rank") == "34");
  CHECK(loose_member(object, "s") == R"("\"rank\":2")");
  CHECK(loose_member(object, "none").empty());
  CHECK(loose_member(R"({"rank":1,"rank":2})", "rank") == "2");
  CHECK(loose_member("[1]", "rank").empty());
  CHECK(loose_member("", "rank").empty());
  CHECK(loose_member("{\"rank\":1, broken", "rank") == "1");
}

TEST_CASE("an event's fields come in any order and spacing") {
  const Padded event(
      "{ \"ts\" :1.5,\"ph\":\"X\"\n,\"args\":{\"ts\":9,\"m\":inf},"
      "\"name\":\"a \\\"b\\\"\",\"pid\":\"x\",\"tid\":0,\"dur\": 2 ,"
      "\"cat\":\"c\",\"id\":1}rest");
  EventFields fields;
  const EventParse parse = parse_event(event.begin, event.end, fields);
  REQUIRE(parse.result == Parsed::kOk);
  CHECK(std::string_view(parse.at, 4) == "rest");
  CHECK(fields.ts == "1.5");
  CHECK(fields.dur == "2");
  CHECK(fields.ph == "\"X\"");
  CHECK(fields.name == "\"a \\\"b\\\"\"");
  CHECK(fields.pid == "\"x\"");
  CHECK(fields.tid == "0");
  CHECK(fields.cat == "\"c\"");
  CHECK(fields.args == "{\"ts\":9,\"m\":inf}");
}

TEST_CASE("every prefix of an event is incomplete, never wrong") {
  const std::string whole =
      R"({"ph":"X","name":"a\"b","args":{"k":[1,"}"]},"ts":"12.5"})";
  for (size_t length = 1; length < whole.size(); ++length) {
    CAPTURE(length);
    const Padded part(whole.substr(0, length));
    EventFields fields;
    CHECK(parse_event(part.begin, part.end, fields).result ==
          Parsed::kIncomplete);
  }
}

TEST_CASE("a broken event says where and why") {
  const struct {
    const char* text;
    long offset;
    const char* what;
  } table[] = {
      {R"({ph:1})", 1, "event's key does not start with a quote"},
      {R"({"ph" 1})", 6, "no colon after an event's key"},
      {R"({"ph":,"a":1})", 6, "event's key has no value"},
      {R"({"name":"a"b","ph":"X"})",
       11,
       "no comma after an event's value (unescaped quote?)"},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    const Padded event(row.text);
    EventFields fields;
    const EventParse parse = parse_event(event.begin, event.end, fields);
    REQUIRE(parse.result == Parsed::kBad);
    CHECK(parse.at - event.begin == row.offset);
    CHECK(std::string(parse.what) == row.what);
  }
}
