#include "cli/trace/clock_options.h"

#include <doctest/doctest.h>

using namespace shp;

TEST_CASE("a pid map takes Host OS PIDs to Torch pids") {
  CHECK(parse_pid_map(R"( {"12": 34, "007": 9} )")->items ==
        PidMap::Items{{{"", 12}, 34}, {{"", 7}, 9}});
  CHECK(parse_pid_map("{}")->items.empty());
  CHECK(parse_pid_map(R"({"1": "2"})")->items == PidMap::Items{{{"", 1}, 2}});
}

TEST_CASE("a key may name the host, which then goes first") {
  const PidMap map = *parse_pid_map(R"({"g:7": 1, "a:b:7": 2, "7": 3})");
  CHECK(*map.find("g", 7) == 1);
  CHECK(*map.find("g.lan", 7) == 1);
  CHECK(*map.find("a:b", 7) == 2);
  CHECK(*map.find("h", 7) == 3);
  CHECK(map.find("g", 8) == nullptr);
  const GivenClocks clocks = *parse_clock_offset(R"({"g:7": 5})");
  CHECK(clocks.find("g", 7)->to_trace(10) == 15);
  CHECK(clocks.find("h", 7) == nullptr);
}

TEST_CASE("a wrong pid map is refused in the predecessor's words") {
  const struct {
    const char* text;
    const char* error;
  } table[] = {
      {"[1]", "--pid-map must be a JSON object"},
      {"5", "--pid-map must be a JSON object"},
      {"null", "--pid-map must be a JSON object"},
      {R"({"-1": 2})", "--pid-map keys must be decimal OS PIDs"},
      {R"({"": 2})", "--pid-map keys must be decimal OS PIDs"},
      {R"({"1.0": 2})", "--pid-map keys must be decimal OS PIDs"},
      {R"({"\u0663": 2})", "--pid-map keys must be decimal OS PIDs"},
      {R"({":1": 2})", "--pid-map keys must be decimal OS PIDs"},
      {R"({"g:": 2})", "--pid-map keys must be decimal OS PIDs"},
      {R"({"g:1": 2, "g:01": 3})",
       "--pid-map contains duplicate PID spellings"},
      {R"({"1": 2, "01": 3})", "--pid-map contains duplicate PID spellings"},
      {R"({"1": 1.5})", "--pid-map values must be Torch Host PIDs"},
      {R"({"1": -1})", "--pid-map values must be Torch Host PIDs"},
      {R"({"1": null})", "--pid-map values must be Torch Host PIDs"},
      {"{1: 2}", "--pid-map is not valid JSON"},
      {"", "--pid-map is not valid JSON"},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    const Result<PidMap> map = parse_pid_map(row.text);
    REQUIRE_FALSE(map);
    CHECK(map.error().message == row.error);
  }
}

TEST_CASE("one offset is for any process, an object's for its own") {
  const GivenClocks one = *parse_clock_offset(" -5 ");
  CHECK(one.only->to_trace(10) == 5);
  CHECK(one.find("h", 1)->to_trace(10) == 5);
  const GivenClocks many = *parse_clock_offset(R"({"7": 1, "08": 2})");
  CHECK_FALSE(many.only);
  CHECK(many.find("h", 7)->to_trace(10) == 11);
  CHECK(many.find("h", 8)->to_trace(10) == 12);
  CHECK(many.find("h", 9) == nullptr);
}

TEST_CASE("anchors are two rising pairs") {
  const GivenClocks one = *parse_clock_anchors("[[0, 100], [10, 120]]");
  CHECK(one.only->to_trace(5) == 110);
  const GivenClocks many = *parse_clock_anchors(R"({"7": [[0,0],[1,1]]})");
  CHECK(many.find("h", 7)->to_trace(5) == 5);
}

TEST_CASE("wrong clocks are refused") {
  const char* keys = "--clock-offset-ns keys must be decimal Host OS PIDs";
  CHECK(parse_clock_offset(R"({"x": 1})").error().message == keys);
  const char* values = "--clock-offset-ns values must be integers of ns";
  for (const char* text : {"1.5",
                           "true",
                           "null",
                           "\"1\"",
                           "[1]",
                           R"({"7": "x"})",
                           "9223372036854775807"}) {
    CAPTURE(text);
    CHECK(parse_clock_offset(text).error().message == values);
  }
  CHECK(parse_clock_anchors(R"({"x": [[0,0],[1,1]]})").error().message ==
        "--clock-anchors-ns keys must be decimal Host OS PIDs");
  const char* pair =
      "--clock-anchors-ns values must be [[host0,target0],[host1,target1]]";
  for (const char* text : {"1",
                           "[]",
                           "[[0,0]]",
                           "[[0,0],[1]]",
                           "[[0,0],[1,1],[2,2]]",
                           "[[0,0],[1,1.5]]",
                           "[[0,0,0],[1,1]]"}) {
    CAPTURE(text);
    CHECK(parse_clock_anchors(text).error().message == pair);
  }
  const char* rise =
      "--clock-anchors-ns must rise from the first pair to the second";
  for (const char* text : {"[[0,0],[0,1]]", "[[1,0],[0,1]]", "[[0,1],[1,1]]"}) {
    CAPTURE(text);
    CHECK(parse_clock_anchors(text).error().message == rise);
  }
  CHECK(parse_clock_anchors("nope").error().message ==
        "--clock-anchors-ns is not valid JSON");
}
