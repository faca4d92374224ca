// The fast way through an event against the plain one, over events as they are
// and as chance changes them, at every place of a block.

#include "cli/trace/event_walk.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace shp;
using namespace std::string_view_literals;

namespace {

const std::string kEvents[] = {
    R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":6,"ts":10.5,)"
    R"("dur":2,"args":{"External id":7,"Input Dims":[[5,1],[],"]"]}})",
    "{\n    \"ph\": \"s\", \"id\": 12, \"pid\": \"a \\\" b\\\\\", \"tid\": "
    "-1,\n"
    "    \"cat\": \"ac2g\", \"name\": \"\\u00e9\"\n  }",
    R"({"name":"a very long name of more than sixty-four bytes, which <[{}]>",)"
    R"("args":{"a":{"b":[{"c":"}"},{}]},"d":inf},"ts":"12.000","bp":null})",
    "{}",
};

struct Taken {
  long bytes = -1;  // -1: not an event, or not a whole one
  EventFields fields;
};

// `text` has the event at `begin` and 64 zeros behind it.
Taken walked(const std::string& text, size_t begin, bool wide) {
  StructureIndex index;
  index.build(text.data(), begin, text.size() - 64, wide);
  Taken out;
  const char* behind = walk_event(index, begin, out.fields);
  out.bytes = behind == nullptr ? -1 : behind - text.data();
  return out;
}

Taken parsed(const std::string& text, size_t begin) {
  Taken out;
  const EventParse parse = parse_event(
      text.data() + begin, text.data() + text.size() - 64, out.fields);
  out.bytes = parse.result == Parsed::kOk ? parse.at - text.data() : -1;
  return out;
}

bool same(const EventFields& a, const EventFields& b) {
  return a.ph == b.ph && a.cat == b.cat && a.name == b.name && a.pid == b.pid &&
         a.tid == b.tid && a.ts == b.ts && a.dur == b.dur && a.args == b.args &&
         a.id == b.id;
}

std::string placed(const std::string& event, size_t begin) {
  return std::string(begin, '"') + event + std::string(64, '\0');
}

}  // namespace

TEST_CASE("an event is taken the fast way, wherever its blocks begin") {
  for (const std::string& event : kEvents) {
    CAPTURE(event);
    for (size_t begin = 0; begin < 130; ++begin) {
      const std::string text = placed(event + "\"]", begin);
      const Taken slow = parsed(text, begin);
      REQUIRE(slow.bytes == static_cast<long>(begin + event.size()));
      for (const bool wide : {false, StructureIndex::machine_is_wide()}) {
        const Taken fast = walked(text, begin, wide);
        REQUIRE(fast.bytes == slow.bytes);
        REQUIRE(same(fast.fields, slow.fields));
      }
    }
  }
}

TEST_CASE("what the fast way takes, the plain one takes alike") {
  constexpr std::string_view kOdd = "\"\"\\{}[],: \n1e-\0\x80"sv;
  std::mt19937 chance(20261201);
  const auto below = [&](size_t n) { return chance() % n; };
  size_t taken = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string event = kEvents[below(std::size(kEvents))];
    for (size_t changes = below(3) + 1; changes > 0; --changes) {
      const size_t at = below(event.size());
      switch (below(3)) {
        case 0:
          event[at] = kOdd[below(kOdd.size())];
          break;
        case 1:
          event.insert(at, 1, kOdd[below(kOdd.size())]);
          break;
        default:
          event.erase(at, below(4));
      }
      event += event.empty() ? "{" : "";
    }
    event[0] = '{';
    const size_t begin = below(130);
    const std::string text = placed(event, begin);
    const Taken slow = parsed(text, begin);
    for (const bool wide : {false, StructureIndex::machine_is_wide()}) {
      const Taken fast = walked(text, begin, wide);
      if (fast.bytes >= 0) {
        ++taken;
        REQUIRE_MESSAGE(fast.bytes == slow.bytes, event);
        REQUIRE_MESSAGE(same(fast.fields, slow.fields), event);
      }
    }
  }
  CHECK(taken > 20'000);
}
