#include "daemon/connection.h"

#include "common/protocol/seqpacket.h"

namespace shp {

bool Connection::send_answers() {
  while (!answers.empty()) {
    const Status sent = send_message(fd.get(), answers.front(), nullptr, 0, 0);
    if (!sent) {
      return sent.error().errno_value == ETIMEDOUT;  // its buffer is full
    }
    answers.pop_front();
  }
  return true;
}

}  // namespace shp
