// Sending a reply without ever waiting for who is to read it, and two small
// things that session threads need of the system. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/protocol/messages.h"

namespace shp {

// A peer that has gone, or does not read, gets none.
void send_reply(int connection, const Reply& reply, std::string_view text);
void send_reply(int connection, ReplyCode code, std::string_view text);

// Of the running kernel; read once.
[[nodiscard]] const std::string& boot_id();

// -1 with errno set when it fails.
[[nodiscard]] int dup_cloexec(int fd);

}  // namespace shp
