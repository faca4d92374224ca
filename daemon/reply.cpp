#include "daemon/reply.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/base/unique_fd.h"
#include "common/protocol/message_codec.h"
#include "common/protocol/seqpacket.h"

namespace shp {
namespace {

std::string read_boot_id() {
  const UniqueFd fd(
      open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[36] = {};
  const ssize_t got = fd ? read(fd.get(), text, sizeof(text)) : 0;
  return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
}

}  // namespace

void send_reply(int connection, const Reply& reply, std::string_view text) {
  // One small packet into an empty socket buffer: it fits or the peer is gone.
  [[maybe_unused]] const Status sent =
      send_message(connection, pack_reply(reply, text), nullptr, 0, 0);
}

void send_reply(int connection, ReplyCode code, std::string_view text) {
  Reply reply{};
  reply.code = static_cast<uint32_t>(code);
  send_reply(connection, reply, text);
}

const std::string& boot_id() {
  static const std::string id = read_boot_id();
  return id;
}

int dup_cloexec(int fd) {
  return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

}  // namespace shp
