#include "common/protocol/message_codec.h"

#include <cstring>
#include <type_traits>

#include "common/base/utf8.h"

namespace shp {
namespace {

constexpr std::string_view kSuffix = ".jsonl";
constexpr size_t kMaxFileName = 255 - std::string_view(".pending").size();
// Sums and differences of times below this cannot overflow; 146 years.
constexpr int64_t kMaxClockNs = int64_t{1} << 62;
constexpr int64_t kMaxUncertaintyNs = int64_t{3600} * 1'000'000'000;

template <typename T>
std::string bytes_of(T fixed, MessageType type, size_t total) {
  static_assert(std::is_trivially_copyable_v<T>);
  fixed.header = {kMessageMagic,
                  kProtocolVersion,
                  static_cast<uint16_t>(type),
                  static_cast<uint32_t>(total),
                  0};
  std::string bytes;
  bytes.reserve(total);
  bytes.append(reinterpret_cast<const char*>(&fixed), sizeof(fixed));
  return bytes;
}

bool is_other_version(const MessageHeader& header) {
  return header.version != kProtocolVersion;
}

Status check_header(std::string_view bytes, MessageType type) {
  const Result<MessageHeader> header = unpack_header(bytes);
  if (!header) {
    return tl::unexpected(header.error());
  }
  if (is_other_version(*header)) {
    return error("protocol version " + std::to_string(header->version) +
                 ", this is " + std::to_string(kProtocolVersion));
  }
  if (header->type != static_cast<uint16_t>(type)) {
    return error("message type " + std::to_string(header->type) + " where " +
                 std::to_string(static_cast<int>(type)) + " was to come");
  }
  return {};
}

// Copies the fixed part out of a message that check_header() found good.
template <typename T>
Result<T> fixed_part(std::string_view bytes, MessageType type) {
  if (Status good = check_header(bytes, type); !good) {
    return tl::unexpected(good.error());
  }
  if (bytes.size() < sizeof(T)) {
    return error("message of " + std::to_string(bytes.size()) +
                 " bytes is too short for its type");
  }
  T fixed;
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  return fixed;
}

template <typename T>
Result<T> whole_message(std::string_view bytes, MessageType type) {
  Result<T> fixed = fixed_part<T>(bytes, type);
  if (fixed && bytes.size() != sizeof(T)) {
    return error("message has bytes behind its end");
  }
  return fixed;
}

Result<StartTexts> split_texts(std::string_view bytes,
                               const StartRequest& fixed) {
  StartTexts texts;
  std::string_view rest = bytes.substr(sizeof(StartRequest));
  for (size_t i = 0; i < kStartTexts; ++i) {
    if (fixed.text_bytes[i] > rest.size()) {
      return error("text lengths do not add up");
    }
    texts[i] = rest.substr(0, fixed.text_bytes[i]);
    rest.remove_prefix(fixed.text_bytes[i]);
  }
  if (!rest.empty()) {
    return error("text lengths do not add up");
  }
  return texts;
}

bool is_clock(int64_t ns) {
  return ns >= 0 && ns < kMaxClockNs;
}

Status check_sample(const ClockSample& sample) {
  // REALTIME may stand before 1970 on a board without a clock; its size is
  // bounded all the same.
  const bool good =
      is_clock(sample.monotonic_ns) && is_clock(sample.monotonic_raw_ns) &&
      sample.realtime_ns > -kMaxClockNs && sample.realtime_ns < kMaxClockNs &&
      sample.uncertainty_ns >= 0 &&
      sample.uncertainty_ns <= kMaxUncertaintyNs &&
      sample.uncertainty_ns <= sample.monotonic_ns;
  return good ? Status{} : Status(error("clock sample is out of range"));
}

Status check_texts(const StartTexts& texts) {
  for (size_t i = 0; i < kStartTexts; ++i) {
    if (i != kArgvText && texts[i].find('\0') != std::string_view::npos) {
      return error("a text holds NUL");
    }
  }
  if (texts[kSessionIdText].empty() || !is_utf8(texts[kSessionIdText])) {
    return error("session id is empty or not UTF-8");
  }
  if (!is_host_file_name(texts[kFileNameText])) {
    return error("not a host file name");
  }
  return {};
}

}  // namespace

bool is_host_file_name(std::string_view name) {
  return name.size() > kSuffix.size() && name.size() <= kMaxFileName &&
         name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos &&
         name.substr(name.size() - kSuffix.size()) == kSuffix;
}

Result<std::string> pack_start(StartRequest request, const StartTexts& texts) {
  size_t total = sizeof(request);
  for (size_t i = 0; i < kStartTexts; ++i) {
    if (texts[i].size() > kMaxMessageBytes - total) {
      return error("the texts of a start request do not fit a message");
    }
    total += texts[i].size();
    request.text_bytes[i] = static_cast<uint32_t>(texts[i].size());
  }
  std::string bytes = bytes_of(request, MessageType::kStart, total);
  for (const std::string_view text : texts) {
    bytes += text;
  }
  return bytes;
}

std::string pack_stop(StopRequest request) {
  return bytes_of(request, MessageType::kStop, sizeof(request));
}

std::string pack_query() {
  return bytes_of(QueryRequest{}, MessageType::kQuery, sizeof(QueryRequest));
}

std::string pack_reply(Reply reply, std::string_view text) {
  text = text.substr(0, kMaxMessageBytes - sizeof(reply));
  reply.text_bytes = static_cast<uint32_t>(text.size());
  return bytes_of(reply, MessageType::kReply, sizeof(reply) + text.size())
      .append(text);
}

std::string pack_query_reply(bool more, std::string_view text) {
  text = text.substr(0, kMaxQueryText);
  QueryReply reply{};
  reply.more = more ? 1 : 0;
  reply.text_bytes = static_cast<uint32_t>(text.size());
  return bytes_of(reply, MessageType::kQueryReply, sizeof(reply) + text.size())
      .append(text);
}

Result<MessageHeader> unpack_header(std::string_view bytes) {
  MessageHeader header;
  if (bytes.size() < sizeof(header) || bytes.size() > kMaxMessageBytes) {
    return error("message of " + std::to_string(bytes.size()) + " bytes");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMessageMagic) {
    return error("not a message of shp");
  }
  if (header.bytes != bytes.size()) {
    return error("message says " + std::to_string(header.bytes) +
                 " bytes and has " + std::to_string(bytes.size()));
  }
  return header;
}

Result<StartMessage> unpack_start(std::string_view bytes) {
  const Result<StartRequest> fixed =
      fixed_part<StartRequest>(bytes, MessageType::kStart);
  if (!fixed) {
    return tl::unexpected(fixed.error());
  }
  const Result<StartTexts> texts = split_texts(bytes, *fixed);
  if (!texts) {
    return tl::unexpected(texts.error());
  }
  if (Status good = check_texts(*texts); !good) {
    return tl::unexpected(good.error());
  }
  if (Status good = check_sample(fixed->start); !good) {
    return tl::unexpected(good.error());
  }
  if (fixed->generation == 0 || fixed->pid <= 0 || fixed->ppid < 0) {
    return error("generation or pid is out of range");
  }
  return StartMessage{*fixed, *texts};
}

Result<StopRequest> unpack_stop(std::string_view bytes) {
  Result<StopRequest> stop =
      whole_message<StopRequest>(bytes, MessageType::kStop);
  if (stop) {
    if (Status good = check_sample(stop->stop); !good) {
      return tl::unexpected(good.error());
    }
  }
  return stop;
}

Status unpack_query(std::string_view bytes) {
  const Result<QueryRequest> query =
      whole_message<QueryRequest>(bytes, MessageType::kQuery);
  return query ? Status{} : Status(tl::unexpected(query.error()));
}

Result<ReplyMessage> unpack_reply(std::string_view bytes) {
  const Result<MessageHeader> header = unpack_header(bytes);
  if (!header) {
    return tl::unexpected(header.error());
  }
  Reply fixed;
  if (header->type != static_cast<uint16_t>(MessageType::kReply) ||
      bytes.size() < sizeof(fixed)) {
    return error("not a reply");
  }
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  const std::string_view text = bytes.substr(sizeof(fixed));
  if (text.size() != fixed.text_bytes) {
    return error("text length of the reply does not add up");
  }
  if (is_other_version(*header) &&
      fixed.code != static_cast<uint32_t>(ReplyCode::kVersion)) {
    return error("reply of protocol version " +
                 std::to_string(header->version));
  }
  return ReplyMessage{fixed, text};
}

Result<QueryReplyMessage> unpack_query_reply(std::string_view bytes) {
  const Result<QueryReply> fixed =
      fixed_part<QueryReply>(bytes, MessageType::kQueryReply);
  if (!fixed) {
    return tl::unexpected(fixed.error());
  }
  const std::string_view text = bytes.substr(sizeof(QueryReply));
  if (text.size() != fixed->text_bytes) {
    return error("text length of the reply does not add up");
  }
  return QueryReplyMessage{fixed->more != 0, text};
}

}  // namespace shp
