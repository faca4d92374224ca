#include "common/protocol/message_codec.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

namespace shp {
namespace {

StartRequest good_request() {
  StartRequest request{};
  request.abi_version = 1;
  request.generation = 7;
  request.pid = 42;
  request.ppid = 1;
  request.start.monotonic_ns = 1000;
  request.start.uncertainty_ns = 100;
  return request;
}

StartTexts good_texts() {
  StartTexts texts;
  texts[kSessionIdText] = "run 1";
  texts[kFileNameText] = "host_42.jsonl";
  texts[kDirectoryText] = "/data/out";
  texts[kHostnameText] = "node7";
  texts[kArgvText] = std::string_view("python\0app.py\0", 14);
  return texts;
}

// Overwrites the bytes at `offset` of a packed message.
template <typename T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

std::string packed_start() {
  return *pack_start(good_request(), good_texts());
}

TEST_CASE("a start request comes out as it went in") {
  const std::string bytes = packed_start();
  // 136 bytes of struct and 5 + 13 + 9 + 5 + 14 of texts.
  CHECK(bytes.size() == 182);
  const Result<StartMessage> start = unpack_start(bytes);
  REQUIRE(start);
  CHECK(start->fixed.generation == 7);
  CHECK(start->fixed.pid == 42);
  CHECK(start->texts[kSessionIdText] == "run 1");
  CHECK(start->texts[kFileNameText] == "host_42.jsonl");
  CHECK(start->texts[kDirectoryText] == "/data/out");
  CHECK(start->texts[kHostnameText] == "node7");
  CHECK(start->texts[kArgvText].size() == 14);
}

TEST_CASE("a start request that is cut anywhere is refused") {
  const std::string bytes = packed_start();
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(unpack_start(std::string_view(bytes).substr(0, size)));
    // The same with a header that says so.
    if (size >= sizeof(MessageHeader)) {
      const auto short_bytes = static_cast<uint32_t>(size);
      const std::string lying = with(bytes.substr(0, size), 8, short_bytes);
      CHECK_FALSE(unpack_start(lying));
    }
  }
}

TEST_CASE("text lengths that do not add up are refused") {
  const size_t lengths = offsetof(StartRequest, text_bytes);
  for (size_t i = 0; i < kStartTexts; ++i) {
    for (const uint32_t lie : {0U, 1U, 1000U, 0xffff'ffffU, 0x8000'0000U}) {
      CHECK_FALSE(unpack_start(with(packed_start(), lengths + 4 * i, lie)));
    }
  }
}

TEST_CASE("a wrong magic, type or version is refused") {
  CHECK_FALSE(unpack_start(with(packed_start(), 0, uint32_t{1})));
  CHECK_FALSE(unpack_start(with(packed_start(), 6, uint16_t{2})));
  CHECK_FALSE(unpack_start(with(packed_start(), 4, uint16_t{2})));
  CHECK_FALSE(unpack_header("1shp"));
  CHECK(unpack_header(with(packed_start(), 4, uint16_t{2}))->version == 2);
}

TEST_CASE("fields out of range are refused") {
  const auto bad = [](auto change) {
    StartRequest request = good_request();
    change(request);
    return !unpack_start(*pack_start(request, good_texts()));
  };
  CHECK(bad([](StartRequest& r) { r.generation = 0; }));
  CHECK(bad([](StartRequest& r) { r.pid = 0; }));
  CHECK(bad([](StartRequest& r) { r.pid = -1; }));
  CHECK(bad([](StartRequest& r) { r.ppid = -1; }));
  CHECK(bad([](StartRequest& r) { r.start.monotonic_ns = -1; }));
  CHECK(bad([](StartRequest& r) { r.start.monotonic_ns = INT64_MAX; }));
  CHECK(bad([](StartRequest& r) { r.start.realtime_ns = INT64_MIN; }));
  CHECK(bad([](StartRequest& r) { r.start.uncertainty_ns = -1; }));
  // The bracket would begin before the clock did.
  CHECK(bad([](StartRequest& r) { r.start.uncertainty_ns = 1001; }));
}

TEST_CASE("texts out of rule are refused") {
  const auto bad = [](StartText which, std::string_view text) {
    StartTexts texts = good_texts();
    texts[which] = text;
    return !unpack_start(*pack_start(good_request(), texts));
  };
  CHECK(bad(kSessionIdText, ""));
  CHECK(bad(kSessionIdText, "\xff"));
  CHECK(bad(kSessionIdText, std::string_view("a\0b", 3)));
  CHECK(bad(kHostnameText, std::string_view("a\0b", 3)));
  CHECK(bad(kFileNameText, "host.txt"));
  CHECK_FALSE(bad(kHostnameText, ""));
  CHECK_FALSE(bad(kArgvText, ""));
}

TEST_CASE("a host file name is one plain name that ends in .jsonl") {
  CHECK(is_host_file_name("a.jsonl"));
  CHECK(is_host_file_name("python_host_1_ab.jsonl"));
  CHECK_FALSE(is_host_file_name(".jsonl"));
  CHECK_FALSE(is_host_file_name(""));
  CHECK_FALSE(is_host_file_name("jsonl"));
  CHECK_FALSE(is_host_file_name(".a.jsonl"));
  CHECK_FALSE(is_host_file_name("../a.jsonl"));
  CHECK_FALSE(is_host_file_name("d/a.jsonl"));
  CHECK_FALSE(is_host_file_name("a.jsonl.pending"));
  CHECK_FALSE(is_host_file_name(std::string_view("a\0.jsonl", 8)));
  // 255 bytes are a name's limit, and .pending has 8 of them.
  CHECK(is_host_file_name(std::string(241, 'a') + ".jsonl"));
  CHECK_FALSE(is_host_file_name(std::string(242, 'a') + ".jsonl"));
}

TEST_CASE("texts that do not fit a message are not packed") {
  const std::string argv(kMaxMessageBytes - 136 - 32, 'x');
  StartTexts texts = good_texts();
  texts[kArgvText] = argv;
  const Result<std::string> full = pack_start(good_request(), texts);
  REQUIRE(full);
  CHECK(full->size() == kMaxMessageBytes);
  CHECK(unpack_start(*full));
  const std::string more = argv + "x";
  texts[kArgvText] = more;
  CHECK_FALSE(pack_start(good_request(), texts));
}

TEST_CASE("stop and query come out as they went in, and nothing may follow") {
  StopRequest stop{};
  stop.generation = 3;
  stop.token[15] = 0xab;
  stop.stop.monotonic_ns = 5;
  const std::string bytes = pack_stop(stop);
  CHECK(bytes.size() == 88);
  REQUIRE(unpack_stop(bytes));
  CHECK(unpack_stop(bytes)->generation == 3);
  CHECK(unpack_stop(bytes)->token[15] == 0xab);
  CHECK_FALSE(unpack_stop(with(bytes + "x", 8, uint32_t{89})));
  CHECK(unpack_query(pack_query()));
  CHECK_FALSE(unpack_query(bytes));
}

TEST_CASE("a reply carries its counts and its line of text") {
  Reply reply{};
  reply.code = static_cast<uint32_t>(ReplyCode::kIo);
  reply.errno_value = 28;
  reply.written_spans = 5;
  const std::string bytes = pack_reply(reply, "disk full");
  CHECK(bytes.size() == 56 + 9);
  const Result<ReplyMessage> out = unpack_reply(bytes);
  REQUIRE(out);
  CHECK(out->fixed.errno_value == 28);
  CHECK(out->fixed.written_spans == 5);
  CHECK(out->text == "disk full");
  CHECK_FALSE(
      unpack_reply(with(bytes, offsetof(Reply, text_bytes), uint32_t{8})));
}

TEST_CASE("only a version reply is taken from another version") {
  Reply reply{};
  reply.code = static_cast<uint32_t>(ReplyCode::kVersion);
  CHECK(unpack_reply(with(pack_reply(reply, "2"), 4, uint16_t{2})));
  reply.code = static_cast<uint32_t>(ReplyCode::kOk);
  CHECK_FALSE(unpack_reply(with(pack_reply(reply, ""), 4, uint16_t{2})));
}

TEST_CASE("a query's answer says whether more follows") {
  const std::string bytes = pack_query_reply(true, "{");
  REQUIRE(unpack_query_reply(bytes));
  CHECK(unpack_query_reply(bytes)->more);
  CHECK(unpack_query_reply(bytes)->text == "{");
  CHECK_FALSE(unpack_query_reply(pack_query()));
}

}  // namespace
}  // namespace shp
