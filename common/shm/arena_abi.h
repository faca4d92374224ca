// THE shared-memory contract: what a traced process (the client, libshp.so)
// and its writer (shpd) both see in one process's arena. This page is the
// specification; ring_writer.h, ring_reader.h, name_table.h and arena.h are its
// only implementations.
//
// WHAT IT IS. One memfd a process, sealed against shrinking and growing, made
// by the client, handed to the daemon over its socket (common/protocol), mapped
// by both. The client never waits for the daemon to record; the daemon trusts
// nothing in here: every index, size and offset is checked against the copy of
// the geometry that it took and validated once, and every record is copied out
// before it is looked at.
//
//   offset            size                     what
//   0                 4096                     ArenaHeader
//   4096              65536                    daemon area (its own business)
//   rings_offset      max_rings * 4096         RingHeader, one a thread
//   states_offset     block_count * 4          who owns each block
//   names_offset      name_capacity * 8        NameEntry, append-only
//   name_bytes_offset name_bytes_capacity      UTF-8 of the names, no NUL
//   blocks_offset     block_count * 32768      blocks: where records go
//
// The file is sparse. A page costs memory when it is first populated, which the
// client does with one system call (MADV_POPULATE_WRITE) before it uses a ring
// page, a block or a further stretch of the name table, so that a lack of
// memory is an error code there and never a SIGBUS in a span call.
//
// RING. A ring is one thread's stream of records: a chain of blocks, taken from
// the pool by the writer when the last one is full, given back by the daemon
// when it is drained. So one thread's burst may use what all the others do not,
// an idle thread costs one block, and the writer never has to look at how far
// the reader is. Single producer (the thread), single consumer (the daemon).
//
//   block A: [BlockHeader | rec rec rec ....... | unused ]   used = end of rec
//               next ──────────► block B: [BlockHeader | rec rec │ free      ]
//                                                       tail ────┘
//   position = (block index << 32) | byte offset in that block
//
// RING STATE (RingHeader::state), actor on each arrow
//
//   kFree ──client thread, CAS──► kClaimed ──client thread──► kReleased
//     ▲     at its first span                 at its exit         │
//     └────────────────── daemon, when drained ───────────────────┘
//
// A released ring's slots that are still open (and its open_beyond) are spans
// that will never end: the daemon counts them before it frees the ring.
// A ring whose thread vanished without a word (raw clone) stays claimed until
// the process ends. Nothing depends on a message from a dying thread.
//
// BLOCK STATE (states[i]): 0 free; else the owning ring's index + 1, with
// kBlockLeft set once the daemon is about to commit a position behind it.
//   free ──client, CAS acquire──► owned ──daemon──► owned, left
//    ▲                                                    │
//    └───────────── daemon, CAS release, after its commit ┘
// One word, so a death between two steps leaves no half-made list behind, and a
// block that a dead daemon was about to free can be told from one that a living
// writer has just taken and not yet stamped.
//
// SESSIONS. ArenaHeader::gate holds the running session's generation, 0 when
// nothing is recorded. A thread that finds a gate other than the generation it
// last wrote for voids its open slots, appends a kSession record, and goes on
// in the same ring. Records before the kSession record of session g are not
// g's, and a record that lands after g's last drain is skipped by the next
// session for that reason.
//
// OPEN SPANS. A started span lives in an OpenSlot of its thread until it ends;
// the record is published first, then the slot is cleared. A reader that finds
// a slot open whose id it has just drained takes the span as ended. A thread
// with more than kOpenSlots open spans keeps the rest privately and counts them
// in RingHeader::open_beyond, so that a death loses no count.
//
// DURABILITY. The daemon appends lines to its file, then commits: it writes the
// new file length and each ring's new position into the *other* halves of
// commit[2] and drained[2], and flips commit_index (release). Only then does it
// free the blocks behind the new positions. Whoever finds an arena later takes
// the halves that commit_index names, cuts the file to that length and goes on:
// nothing is lost and nothing is twice. (SIGKILL stops a process between two of
// its stores; it does not reorder them.) What it was about to free then, blocks
// and whole rings, says so itself (kBlockLeft, kRingDone) and is freed again.
// The commit of a session's end comes only after its file has its name: a
// daemon that dies between the two makes the whole end anew.
//
// WHAT IS ABSENT ON PURPOSE. No locks, no condition variables, no pointers, no
// reader position that the writer must watch, no file descriptor that the
// client must keep: a program may close them all and stays recorded.
//
// VERSIONS. kAbiVersion changes whenever the meaning of a byte does; both sides
// refuse another version (the daemon says which in its reply). New record kinds
// and flags may be added without a change: a reader skips, and counts, a kind
// that it does not know by its size field.
//   1  first version. Since 0.2 with kInstant and kCounter, and lost_marks in
//      what was reserved (0 from an older client).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/clock.h"

namespace shp {

inline constexpr uint64_t kArenaMagic = 0x3141'4e45'5241'5048;  // "HPARENA1"
inline constexpr uint32_t kAbiVersion = 1;

inline constexpr uint32_t kPageBytes = 4096;
inline constexpr uint32_t kDaemonAreaOffset = kPageBytes;
inline constexpr uint32_t kDaemonAreaBytes = 65536;
inline constexpr uint32_t kBlockBytes = 32768;
inline constexpr uint32_t kRecordBytes = 32;  // the unit of all record sizes
inline constexpr uint32_t kOpenSlots = 120;   // that fit a RingHeader's page
inline constexpr uint32_t kNoBlock = 0xffff'ffff;
inline constexpr uint32_t kBlockLeft = 0x8000'0000;  // in states[i]
// In RingHeader::drained_session, beside generations.
inline constexpr uint32_t kRingDone = 0xffff'ffff;    // counted; to be freed
inline constexpr uint32_t kRingBroken = 0xffff'fffe;  // read no further
inline constexpr uint32_t kNoName = 0;                // name ids start at 1
inline constexpr uint32_t kMaxNameBytes = 1U << 20;
inline constexpr uint32_t kMaxArgsBytes = 1U << 20;

// Limits that the daemon holds any client to.
inline constexpr uint32_t kMaxRings = 16384;
inline constexpr uint32_t kMaxBlocks = 131072;  // 4 GiB
inline constexpr uint32_t kMaxNames = 1U << 20;
inline constexpr uint32_t kMaxNameTableBytes = 1U << 26;  // 64 MiB

// Where things are. Written once by the client before the hand-over, copied and
// validated once by the daemon; never read from the arena again after that.
struct ArenaGeometry {
  uint64_t arena_bytes;
  uint64_t rings_offset;
  uint64_t states_offset;
  uint64_t names_offset;
  uint64_t name_bytes_offset;
  uint64_t blocks_offset;
  uint32_t max_rings;
  uint32_t block_count;
  uint32_t name_capacity;        // entries
  uint32_t name_bytes_capacity;  // bytes
};
static_assert(sizeof(ArenaGeometry) == 64);

// One half of the daemon's two-phase commit, see DURABILITY.
struct CommitRecord {
  uint64_t file_bytes;     // length of the pending file that counts
  uint64_t written_spans;  // lines in it, by type
  uint64_t written_instants;
  uint64_t written_counters;
  // Counts of the daemon's own, as of those lines.
  uint64_t outside;
  uint64_t unfinished;  // of threads that have gone
  uint64_t bad_name;
  uint64_t bad_args;
  uint64_t broken_rings;
  uint64_t lost_marks;
  uint64_t reserved[6];
};
static_assert(sizeof(CommitRecord) == 128);

struct ArenaHeader {
  // --- line 0: constant after creation. Client writes, plain ---------------
  uint64_t magic;
  uint32_t abi_version;
  uint32_t header_bytes;  // sizeof(ArenaHeader)
  uint32_t clock_kind;    // ClockKind of every tick in this arena
  uint32_t client_pid;    // getpid() in the client's own namespace
  uint8_t token[16];      // random; names this arena in later messages
  uint64_t reserved0[3];

  // --- line 1: constant after creation --------------------------------------
  ArenaGeometry geometry;

  // --- line 2: control. Client writes ---------------------------------------
  // The running session's generation, 0 when closed. Release by start() after
  // the hand-over, release 0 by stop(); span calls load it relaxed: what they
  // find through it is their own thread's memory.
  std::atomic<uint32_t> gate;
  // Rings ever claimed: indices below it may hold something. Release after the
  // claim's own stores, acquire by the daemon.
  std::atomic<uint32_t> rings_high;
  // Names published: entries below it are whole. Release / acquire.
  std::atomic<uint32_t> names_count;
  std::atomic<uint32_t> name_bytes_used;  // relaxed; under the client's lock
  // Set by the library's destructor at an ordinary exit. Relaxed.
  std::atomic<uint32_t> exiting;
  // Blocks not free, as the client counts them up and the daemon down. Relaxed:
  // a hint for waking and for the pool's fill level, not an authority; read as
  // signed, since a block may be counted down before it was counted up.
  std::atomic<uint32_t> blocks_used;
  // Losses that belong to no ring: spans of threads that could get none.
  std::atomic<uint64_t> lost_no_ring;
  // Spans whose name was empty, held NUL or was no string.
  std::atomic<uint64_t> lost_bad_name;
  // Attribute sets that could not be encoded; the span itself is kept.
  std::atomic<uint64_t> bad_args;
  // Spans that got the name "(too many names)" since the name table was full.
  std::atomic<uint64_t> names_lost;
  // Marks and counter values that belong to no ring or had a bad name.
  std::atomic<uint64_t> lost_marks;

  // --- line 3: waking -------------------------------------------------------
  // A futex word. The client adds 1 and wakes it when the pool fills up, the
  // daemon waits on it (shared, no FUTEX_PRIVATE_FLAG) between two drains.
  std::atomic<uint32_t> wake;
  // 1 while the daemon waits on `wake`: a client need not call the kernel else.
  std::atomic<uint32_t> daemon_sleeps;
  // Daemon adds 1 after freeing blocks; a client that chose to wait for room
  // waits on it, having counted itself in room_waiters.
  std::atomic<uint32_t> room;
  std::atomic<uint32_t> room_waiters;
  // CLOCK_MONOTONIC ns of the daemon's last drain; relaxed; how a client sees
  // that its daemon is gone.
  std::atomic<int64_t> heartbeat_ns;
  // Where a search for a free block should begin. The client moves it behind
  // each block that it takes, the daemon back to a lower one that it frees.
  // Relaxed, a hint: reusing low indices keeps the working set small and warm.
  std::atomic<uint32_t> free_hint;
  // Reserved for a session that the daemon starts or stops from outside: the
  // generation that it asks for. Clients of version 1 ignore it.
  std::atomic<uint32_t> requested_gate;
  uint64_t reserved3[4];

  // --- lines 4..8: the daemon's commit --------------------------------------
  std::atomic<uint32_t> commit_index;  // 0 or 1: the half that counts
  uint32_t reserved4[15];
  CommitRecord commit[2];

  uint8_t reserved5[kPageBytes - 9 * 64];
};
static_assert(sizeof(ArenaHeader) == kPageBytes);
static_assert(offsetof(ArenaHeader, geometry) == 64);
static_assert(offsetof(ArenaHeader, gate) == 128);
static_assert(offsetof(ArenaHeader, wake) == 192);
static_assert(offsetof(ArenaHeader, commit_index) == 256);
static_assert(offsetof(ArenaHeader, commit) == 320);

enum RingState : uint32_t { kFree = 0, kClaimed = 1, kReleased = 2 };

// A span that was started and has not ended. The owner writes name and
// start_ticks, then id (release); clearing is id = 0 (release) after the record
// is published. Readers load id (acquire) before and after the rest.
struct OpenSlot {
  std::atomic<uint64_t> id;  // 0: the slot is free
  uint64_t start_ticks;
  uint32_t name;
  uint32_t reserved0;
  uint64_t reserved1;
};
static_assert(sizeof(OpenSlot) == 32);

struct RingHeader {
  // --- line 0: who. Written by the claiming thread -------------------------
  std::atomic<uint32_t> state;    // RingState
  std::atomic<uint32_t> session;  // generation of the last kSession record
  std::atomic<uint32_t> tid;      // gettid() in the client's namespace
  // First block of this claim. Stored before state's readers can see records:
  // tail (release) follows it.
  std::atomic<uint32_t> first_block;
  char thread_name[16];  // comm at the time of the claim, NUL-padded
  uint64_t reserved0[4];

  // --- line 1: the writer's ------------------------------------------------
  // Position behind the last published record. Release after the record's
  // bytes; acquire by the reader.
  std::atomic<uint64_t> tail;
  // Spans dropped since no block could be had.
  std::atomic<uint64_t> overflow;
  // Spans dropped since their call came inside another one (signal handler).
  std::atomic<uint64_t> reentrant;
  // Open spans beyond the slots below, now.
  std::atomic<uint32_t> open_beyond;
  uint32_t reserved1;
  // Marks and counter values that were dropped, whatever the cause.
  std::atomic<uint64_t> lost_marks;
  uint64_t reserved2[3];

  // --- line 2: the daemon's ------------------------------------------------
  // drained[commit_index & 1] is the position up to which records are in the
  // file for good. 0: nothing yet, start at first_block's first record. Before
  // it sets a released and drained ring to kFree, the daemon stores 0 to
  // `open_beyond` and the slots' ids (which it has counted), to `tail` (so that
  // a new claim shows nothing until its own first record) and then to these: a
  // released ring with a tail of 0 is one whose freeing was cut short.
  std::atomic<uint64_t> drained[2];
  // Generation of the last kSession record before drained[i], 0 before the
  // first, or kRingDone, kRingBroken.
  std::atomic<uint32_t> drained_session[2];
  // `overflow`, `reentrant` and `lost_marks` when the session began.
  uint64_t overflow_base;
  uint64_t reentrant_base;
  uint64_t lost_marks_base;
  uint64_t reserved3[2];

  // --- line 3 ---------------------------------------------------------------
  uint64_t reserved4[8];

  OpenSlot open[kOpenSlots];
};
static_assert(sizeof(RingHeader) == kPageBytes);
static_assert(offsetof(RingHeader, tail) == 64);
static_assert(offsetof(RingHeader, lost_marks) == 96);
static_assert(offsetof(RingHeader, drained) == 128);
static_assert(offsetof(RingHeader, open) == 256);

struct BlockHeader {
  uint32_t ring;               // owner's index; plain, before `tail` names it
  uint32_t sequence;           // 0, 1, 2 … along the ring's chain, wraps
  std::atomic<uint32_t> used;  // bytes with header; final once `next` is set
  std::atomic<uint32_t> next;  // kNoBlock, then (release) the next block
  uint64_t reserved[6];
};
static_assert(sizeof(BlockHeader) == 64);

// Name id i (1, 2, …) is entry i - 1. The bytes of an entry hold no NUL; what
// lies between two entries' bytes is nobody's.
struct NameEntry {
  uint32_t offset;  // into the name bytes
  uint32_t bytes;
};
static_assert(sizeof(NameEntry) == 8);

// Record kinds. 0 is never written: a zero page is no record.
enum RecordKind : uint8_t {
  kSession = 1,   // generation in `name`; separates sessions
  kSpan = 2,      // a span that ended
  kArgsPart = 3,  // a piece of the args of the next kSpan / kDeferred of `id`
  kDeferred = 4,  // args of a span that was written with kHasDeferred
  kInstant = 5,   // a mark, start_ticks only; args as a kSpan's
  kCounter = 6,   // a value at a time, double in end_ticks; no args
};

enum RecordFlag : uint8_t {
  kHasArgs = 1,      // u32 byte count and that many bytes of JSON object text
  kHasParts = 2,     // kArgsPart records of the same id came just before
  kHasDeferred = 4,  // u64: the key under which kDeferred brings the args;
                     // keys count 1, 2, 3 ... in a session, each once
  kBadArgs = 8,      // the args could not be encoded; args is {}
};

// A record: 32 bytes, then `units`-1 more units of payload. Always aligned to
// 32 bytes and inside one block, so that the common one is a single store that
// crosses no cache line.
//
//   0        1        2          4         8             16           24
//   | kind   | flags  | units    | name    | start_ticks | end_ticks  | id |
//
// Payload by flags, in this order: kHasDeferred u64 key; kHasArgs u32 count,
// text. kArgsPart: u32 count, bytes. kDeferred: u64 key, then (kHasArgs) u32
// count, text; without kHasArgs the args stay {}.
struct Record {
  uint8_t kind;
  uint8_t flags;
  uint16_t units;  // size in kRecordBytes, header included; never 0
  uint32_t name;   // name id; kSession: the generation
  uint64_t start_ticks;
  uint64_t end_ticks;
  uint64_t id;  // unique in the process but for wrap-around, see OpenSlot
};
static_assert(sizeof(Record) == kRecordBytes);
static_assert(alignof(Record) == 8);

// Largest payload of one record; longer args travel as kArgsPart records.
inline constexpr uint32_t kMaxPayloadBytes = 8192;

inline constexpr uint64_t position_of(uint32_t block, uint32_t offset) {
  return (uint64_t{block} << 32) | offset;
}
inline constexpr uint32_t position_block(uint64_t position) {
  return static_cast<uint32_t>(position >> 32);
}
inline constexpr uint32_t position_offset(uint64_t position) {
  return static_cast<uint32_t>(position);
}

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace shp
