#include "common/protocol/seqpacket.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace shp {
namespace {

struct Pair {
  UniqueFd a;
  UniqueFd b;
  Pair() {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
    a.reset(fds[0]);
    b.reset(fds[1]);
  }
};

struct TemporaryDirectory {
  std::string path;
  TemporaryDirectory() {
    char name[] = "/tmp/shp-seqpacket-XXXXXX";
    path = mkdtemp(name);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
};

size_t open_fds() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_CASE("a message arrives whole with its descriptors, close-on-exec") {
  Pair pair;
  const UniqueFd file(open("/dev/null", O_RDONLY));
  const int fds[] = {file.get(), file.get()};
  REQUIRE(send_message(pair.a.get(), "hello", fds, 2, 1000));
  Result<ReceivedMessage> got = receive_message(pair.b.get(), 1000);
  REQUIRE(got);
  CHECK(got->bytes == "hello");
  CHECK(got->fd_count == 2);
  CHECK((fcntl(got->fds[1].get(), F_GETFD) & FD_CLOEXEC) != 0);
  struct stat a;
  struct stat b;
  fstat(file.get(), &a);
  fstat(got->fds[0].get(), &b);
  CHECK(a.st_rdev == b.st_rdev);
}

TEST_CASE("a peer that hangs up, or says nothing, is told apart") {
  Pair pair;
  CHECK(receive_message(pair.b.get(), 10).error().errno_value == ETIMEDOUT);
  pair.a.reset();
  CHECK(receive_message(pair.b.get(), 1000).error().errno_value == ECONNRESET);
  // And no SIGPIPE.
  CHECK(send_message(pair.b.get(), "x", nullptr, 0, 0).error().errno_value ==
        EPIPE);
}

TEST_CASE("more descriptors than may come are an error and all are closed") {
  Pair pair;
  const UniqueFd file(open("/dev/null", O_RDONLY));
  char control[CMSG_SPACE(sizeof(int) * 6)] = {};
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  cmsghdr* first = CMSG_FIRSTHDR(&header);
  first->cmsg_level = SOL_SOCKET;
  first->cmsg_type = SCM_RIGHTS;
  first->cmsg_len = CMSG_LEN(sizeof(int) * 6);
  for (size_t i = 0; i < 6; ++i) {
    const int fd = file.get();
    std::memcpy(CMSG_DATA(first) + i * sizeof(int), &fd, sizeof(fd));
  }
  const size_t before = open_fds();
  REQUIRE(sendmsg(pair.a.get(), &header, 0) == 1);
  CHECK(receive_message(pair.b.get(), 1000).error().errno_value == EMSGSIZE);
  CHECK(open_fds() == before);
}

TEST_CASE("a message past the limit is an error, not a part of one") {
  Pair pair;
  const std::string large(kMaxMessageBytes + 1, 'x');
  REQUIRE(send(pair.a.get(), large.data(), large.size(), 0) ==
          static_cast<ssize_t>(large.size()));
  CHECK(receive_message(pair.b.get(), 1000).error().errno_value == EMSGSIZE);
  CHECK_FALSE(send_message(pair.a.get(), large, nullptr, 0, 1000));
  const std::string largest(kMaxMessageBytes, 'y');
  REQUIRE(send_message(pair.a.get(), largest, nullptr, 0, 1000));
  CHECK(receive_message(pair.b.get(), 1000)->bytes == largest);
}

TEST_CASE("a reader that does not read costs a sender its time limit only") {
  Pair pair;
  const std::string message(kMaxMessageBytes, 'x');
  Status sent;
  for (int i = 0; i < 1000 && sent; ++i) {
    sent = send_message(pair.a.get(), message, nullptr, 0, 10);
  }
  REQUIRE_FALSE(sent);
  CHECK(sent.error().errno_value == ETIMEDOUT);
}

TEST_CASE("a socket listens under its mode and is connected to by path") {
  const TemporaryDirectory directory;
  const std::string path = directory.path + "/s";
  const Result<UniqueFd> listener = listen_seqpacket(path, 0600);
  REQUIRE(listener);
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(accept_seqpacket(listener->get()).error().errno_value == EAGAIN);
  const Result<UniqueFd> client = connect_seqpacket(path, 1000);
  REQUIRE(client);
  const Result<UniqueFd> served = accept_seqpacket(listener->get());
  REQUIRE(served);
  REQUIRE(send_message(client->get(), "hi", nullptr, 0, 1000));
  CHECK(receive_message(served->get(), 1000)->bytes == "hi");
  CHECK(listen_seqpacket(path, 0600).error().errno_value == EADDRINUSE);
}

TEST_CASE("a path longer than a socket address works all the same") {
  const TemporaryDirectory directory;
  const std::string deep = directory.path + "/" + std::string(150, 'd');
  REQUIRE(mkdir(deep.c_str(), 0700) == 0);
  const Result<UniqueFd> listener = listen_seqpacket(deep + "/s", 0600);
  REQUIRE(listener);
  CHECK(connect_seqpacket(deep + "/s", 1000));
}

TEST_CASE("where nobody listens the error says which kind of nobody") {
  const TemporaryDirectory directory;
  const std::string path = directory.path + "/s";
  CHECK(connect_seqpacket(path, 1000).error().errno_value == ENOENT);
  { const Result<UniqueFd> gone = listen_seqpacket(path, 0600); }
  CHECK(connect_seqpacket(path, 1000).error().errno_value == ECONNREFUSED);
}

}  // namespace
}  // namespace shp
