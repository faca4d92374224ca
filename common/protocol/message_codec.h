// Messages to bytes and back: pure functions, the only place that knows how the
// texts follow the structs of messages.h.
//
// pack_* fill in the header and the lengths. unpack_* believe nothing: they
// check magic, version, type, that all lengths add up to exactly the bytes that
// came, and the rules that messages.h states for each field, and never read
// outside `bytes`. The views of an unpacked message point into `bytes`.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/protocol/messages.h"

namespace shp {

using StartTexts = std::array<std::string_view, kStartTexts>;  // by StartText

struct StartMessage {
  StartRequest fixed;
  StartTexts texts;
};
struct ReplyMessage {
  Reply fixed;
  std::string_view text;
};
struct QueryReplyMessage {
  bool more = false;
  std::string_view text;
};

// "name.jsonl": no '/', no NUL, no leading '.', and short enough for .pending.
[[nodiscard]] bool is_host_file_name(std::string_view name);

// Fails when the texts do not fit a message (cut argv first).
[[nodiscard]] Result<std::string> pack_start(StartRequest request,
                                             const StartTexts& texts);
[[nodiscard]] std::string pack_stop(StopRequest request);
[[nodiscard]] std::string pack_query();
// A text that does not fit is cut.
[[nodiscard]] std::string pack_reply(Reply reply, std::string_view text);
[[nodiscard]] std::string pack_query_reply(bool more, std::string_view text);
// Text that one QueryReply carries at most.
inline constexpr size_t kMaxQueryText = kMaxMessageBytes - sizeof(QueryReply);

// Magic and length only: what a receiver needs to tell another version apart.
[[nodiscard]] Result<MessageHeader> unpack_header(std::string_view bytes);
[[nodiscard]] Result<StartMessage> unpack_start(std::string_view bytes);
[[nodiscard]] Result<StopRequest> unpack_stop(std::string_view bytes);
[[nodiscard]] Status unpack_query(std::string_view bytes);
// A kVersion reply is taken from a daemon of any version.
[[nodiscard]] Result<ReplyMessage> unpack_reply(std::string_view bytes);
[[nodiscard]] Result<QueryReplyMessage> unpack_query_reply(
    std::string_view bytes);

}  // namespace shp
