// Every unpack_* over any bytes; what is taken must come out of a second round
// of packing and unpacking as it was.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "common/protocol/message_codec.h"

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void check_start(std::string_view bytes) {
  const auto start = shp::unpack_start(bytes);
  if (!start) {
    return;
  }
  size_t total = sizeof(shp::StartRequest);
  for (const std::string_view text : start->texts) {
    total += text.size();
    require(text.data() >= bytes.data() &&
            text.data() + text.size() <= bytes.data() + bytes.size());
  }
  require(total == bytes.size());
  const auto packed = shp::pack_start(start->fixed, start->texts);
  require(packed && packed->size() == bytes.size());
  const auto again = shp::unpack_start(*packed);
  require(again && again->texts == start->texts);
}

void check_replies(std::string_view bytes) {
  if (const auto reply = shp::unpack_reply(bytes)) {
    require(reply->text.size() + sizeof(shp::Reply) == bytes.size());
  }
  if (const auto reply = shp::unpack_query_reply(bytes)) {
    require(reply->text.size() + sizeof(shp::QueryReply) == bytes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  // The length field is right every time, or hardly anything would get past it.
  if (bytes.size() >= sizeof(shp::MessageHeader)) {
    const auto length = static_cast<uint32_t>(bytes.size());
    std::memcpy(bytes.data() + offsetof(shp::MessageHeader, bytes),
                &length,
                sizeof(length));
  }
  check_start(bytes);
  check_replies(bytes);
  const auto stop = shp::unpack_stop(bytes);
  require(!stop || bytes.size() == sizeof(shp::StopRequest));
  const auto query = shp::unpack_query(bytes);
  require(!query || bytes.size() == sizeof(shp::QueryRequest));
  return 0;
}
