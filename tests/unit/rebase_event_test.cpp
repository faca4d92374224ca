#include "cli/trace/rebase_event.h"

#include <doctest/doctest.h>

#include <string>

using namespace shp;

namespace {

std::string rebased(const std::string& text, const EventRebase& rebase) {
  const std::string padded = text + std::string(32, '\0');
  EventFields fields;
  const EventParse parse =
      parse_event(padded.data(), padded.data() + text.size(), fields);
  REQUIRE(parse.result == Parsed::kOk);
  return rebase_event(
      std::string_view(padded).substr(0, text.size()), fields, "77", rebase);
}

}  // namespace

TEST_CASE("pid, time and id are new, every other byte is old") {
  EventRebase rebase;
  rebase.old_base_ns = 5'000;
  rebase.new_base_ns = 1'000;
  rebase.trace = 2;
  CHECK(
      rebased(R"({ "ts": 1.5,"args":{"pid":1, "m":inf},"id" : 9,"pid":"a"})",
              rebase) ==
      R"({ "ts": 5.500,"args":{"pid":1, "m":inf},"id" : 8589934601,"pid":77})");
}

TEST_CASE("quoted absolute times become numbers from the new base") {
  EventRebase rebase;
  rebase.new_base_ns = 1'736'405'443'000'000'000;
  CHECK(rebased(R"({"ts":"1736405443863674.400","pid":3})", rebase) ==
        R"({"ts":863674.400,"pid":77})");
}

TEST_CASE("what has no time or a broken one keeps it") {
  CHECK(rebased(R"({"ph":"M","pid":3})", {}) == R"({"ph":"M","pid":77})");
  CHECK(rebased(R"({"ts":inf,"pid":3})", {}) == R"({"ts":inf,"pid":77})");
}

TEST_CASE("ids of two traces never meet") {
  CHECK(rebase_id("5", 0) == "5");
  CHECK(rebase_id("5", 1) == "4294967301");
  CHECK(rebase_id("\"0x5\"", 3) == "\"3:0x5\"");
  const std::string large = rebase_id("1736405443997036830", 1);
  CHECK(large != rebase_id("1736405443997036830", 2));
  CHECK(large.size() <= 16);
  CHECK(std::stoull(large) < (1ULL << 52));
  CHECK(rebase_id("-5", 1) != rebase_id("5", 1));
}
