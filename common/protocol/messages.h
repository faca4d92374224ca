// What a client (libshp.so, shp) and the daemon say to each other over the
// daemon's SOCK_SEQPACKET socket. This page is the specification; seqpacket.*
// moves the bytes and the descriptors, message_codec.* packs and checks them.
//
// ONE REQUEST A CONNECTION. A client connects, sends one request, reads one
// reply (a QueryReply may come in several packets), and is done with it. The
// only connection that outlives its reply is a Start's: the client keeps it
// open, close-on-exec, and never speaks on it again; its hang-up makes the
// daemon look whether the process was replaced by exec. A client that closed
// all its descriptors loses nothing: its life is watched by pidfd, and Stop
// comes over a new connection.
//
//   client                                 daemon
//   StartRequest + fds ──────────────────► checks version, arena, directory;
//                                          makes NAME.pending
//   Reply (kOk, or why not)  ◄────────────
//        … records, no further word …      drains
//   StopRequest (new connection) ────────► last drain, publish
//   Reply (counts) ◄──────────────────────
//
//   QueryRequest ────────────────────────► one JSON object as text
//
// A DAEMON THAT DIED. The next one has all sessions again from whoever held
// their descriptors meanwhile (daemon/keeper.h), and the client notices
// nothing, or loses the connection that it waits on and asks again. Where
// nobody held them, a Stop is answered kRefused with ESRCH; the client then
// sends its StartRequest again, kResume set, and its Stop after that.
//
// TRUST. The daemon takes nothing in a message as true but what the kernel says
// of the sender (SO_PEERCRED, SO_PEERGROUPS, SO_PEERPIDFD): pid, names and
// texts are only written into that client's own file. Stop is obeyed for the
// uid that started the session (and root).
//
// LAYOUT. Host byte order (both ends are on one machine), fixed structs, then
// the texts back to back, their lengths in `text_bytes`. Texts are UTF-8
// without NUL except argv, whose arguments are each ended by NUL. A message is
// at most kMaxMessageBytes. Receivers check magic, version, type and that the
// lengths add up exactly.
//
// VERSIONS. kProtocolVersion changes with any change here; an other version is
// answered with Reply kVersion, whose text names both, and nothing else: the
// MessageHeader and Reply structs therefore never change.
//   1  first version
#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace shp {

inline constexpr uint32_t kMessageMagic = 0x7068'7331;  // "1shp"
inline constexpr uint16_t kProtocolVersion = 1;
inline constexpr uint32_t kMaxMessageBytes = 65536;
inline constexpr int kMaxMessageFds = 4;

enum class MessageType : uint16_t {
  kStart = 1,
  kStop = 2,
  kQuery = 3,
  kReply = 100,
  kQueryReply = 101,
};

struct MessageHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t type;   // MessageType
  uint32_t bytes;  // of the whole message
  uint32_t reserved;
};
static_assert(sizeof(MessageHeader) == 16);

// Descriptors that come with a StartRequest, in this order. kPidfd is present
// when StartFlag kHasPidfd is set; the daemon prefers SO_PEERPIDFD.
enum StartFd { kArenaFd = 0, kDirectoryFd = 1, kPidfd = 2 };
enum StartFlag : uint32_t {
  kHasPidfd = 1,
  kResume = 2,  // go on with this session: its arena and NAME.pending are there
};

enum StartText : uint32_t {
  kSessionIdText = 0,  // metadata "session_id", not empty
  kFileNameText = 1,   // plain name ending in .jsonl: no '/', no leading '.'
  kDirectoryText = 2,  // for messages and `shp status` only
  kHostnameText = 3,
  kArgvText = 4,  // NUL-ended arguments, cut to what fits
  kStartTexts = 5,
};

struct StartRequest {
  MessageHeader header;
  uint32_t abi_version;  // kAbiVersion of the arena
  uint32_t generation;   // the gate value that the client will set
  uint8_t token[16];     // the arena's
  int32_t pid;           // in the client's own namespace
  int32_t ppid;
  uint64_t pid_namespace;  // inode of /proc/self/ns/pid, 0 unknown
  uint32_t flags;          // StartFlag
  uint32_t reserved;
  ClockSample start;  // taken by the client just before
  uint32_t text_bytes[kStartTexts];
  uint32_t reserved1;
};
static_assert(sizeof(StartRequest) == 136);

struct StopRequest {
  MessageHeader header;
  uint8_t token[16];
  uint32_t generation;
  uint32_t reserved;
  ClockSample stop;  // taken by the client just after it closed its gate
};
static_assert(sizeof(StopRequest) == 88);

struct QueryRequest {
  MessageHeader header;
};

enum class ReplyCode : uint32_t {
  kOk = 0,
  kVersion = 1,     // text says which versions met
  kRefused = 2,     // bad request, no such session, not your session, quota
  kFileExists = 3,  // errno_value EEXIST: somebody has that name
  kIo = 4,          // errno_value says what the file system said
  kShuttingDown = 5,
};

struct Reply {
  MessageHeader header;
  uint32_t code;        // ReplyCode
  int32_t errno_value;  // 0 unless a system call failed
  uint64_t written_spans;
  uint64_t dropped_spans;
  uint64_t bad_args;
  uint32_t text_bytes;  // one line, for people; empty when kOk
  uint32_t reserved;
};
static_assert(sizeof(Reply) == 56);

// A piece of the answer to a query; `more` is 0 on the last.
struct QueryReply {
  MessageHeader header;
  uint32_t more;
  uint32_t text_bytes;
};
static_assert(sizeof(QueryReply) == 24);

}  // namespace shp
