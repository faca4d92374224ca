"""A client of shpd made by hand from arena_abi.h and messages.h.

Not a line of the recorder is used, so that daemon and recorder are each held
against the contract and not against each other. Every byte can be put wrong.
Plain standard library.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import socket
import struct
import time

PAGE = 4096
RINGS_OFFSET = PAGE + 65536
BLOCK = 32768
F_ADD_SEALS, SHRINK, GROW = 1033, 2, 4
NO_BLOCK = 0xFFFFFFFF

SESSION, SPAN, ARGS_PART, DEFERRED = 1, 2, 3, 4
HAS_ARGS, HAS_PARTS, HAS_DEFERRED, BAD_ARGS = 1, 2, 4, 8
FREE, CLAIMED, RELEASED = 0, 1, 2

# ArenaHeader
GATE, RINGS_HIGH, NAMES_COUNT, NAME_BYTES_USED = 128, 132, 136, 140
EXITING, BLOCKS_USED, LOST_NO_RING = 144, 148, 152
WAKE, DAEMON_SLEEPS, ROOM, ROOM_WAITERS, HEARTBEAT = 192, 196, 200, 204, 208
COMMIT_INDEX, COMMITS = 256, 320
# RingHeader
STATE, RING_SESSION, TID, FIRST_BLOCK, THREAD_NAME = 0, 4, 8, 12, 16
TAIL, OVERFLOW, REENTRANT, OPEN_BEYOND, DRAINED, SLOTS = 64, 72, 80, 88, 128, 256

OK, VERSION, REFUSED, FILE_EXISTS, IO, SHUTTING_DOWN = range(6)
START, STOP, QUERY, REPLY, QUERY_REPLY = 1, 2, 3, 100, 101
MAGIC = 0x70687331

LIBC = ctypes.CDLL(None)
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}[os.uname().machine]


def page(count):
    return (count + PAGE - 1) // PAGE * PAGE


class Arena:
    """An arena over CLOCK_MONOTONIC: a tick is a nanosecond."""

    def __init__(self, rings=8, blocks=64, names=256, name_bytes=65536,
                 seals=SHRINK | GROW, token=None, abi=1):
        self.token = token or os.urandom(16)
        self.rings_count, self.blocks = rings, blocks
        self.states = RINGS_OFFSET + rings * PAGE
        self.names = page(self.states + blocks * 4)
        self.name_bytes = page(self.names + names * 8)
        self.blocks_offset = page(self.name_bytes + name_bytes)
        self.size = self.blocks_offset + blocks * BLOCK
        self.fd = os.memfd_create("py-arena",
                                  os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        self.map = mmap.mmap(self.fd, self.size)
        self.words64 = memoryview(self.map).cast("Q")
        self.words32 = memoryview(self.map).cast("I")
        if seals:
            fcntl.fcntl(self.fd, F_ADD_SEALS, seals)
        self.put("<QIIII", 0, 0x31414E4552415048, abi, PAGE, 0, os.getpid())
        self.map[24:40] = self.token
        self.put("<QQQQQQIIII", 64, self.size, RINGS_OFFSET, self.states,
                 self.names, self.name_bytes, self.blocks_offset, rings,
                 blocks, names, name_bytes)
        self.name_ids = {}

    def put(self, layout, offset, *values):
        """Single words are stored whole (struct.pack_into goes byte by byte,
        and the daemon may look at any moment)."""
        if layout == "<Q":
            self.words64[offset // 8] = values[0]
        elif layout == "<I":
            self.words32[offset // 4] = values[0]
        else:
            struct.pack_into(layout, self.map, offset, *values)

    def u32(self, offset):
        return struct.unpack_from("<I", self.map, offset)[0]

    def u64(self, offset):
        return struct.unpack_from("<Q", self.map, offset)[0]

    def ring_at(self, index):
        return RINGS_OFFSET + index * PAGE

    def block_at(self, index):
        return self.blocks_offset + index * BLOCK

    def name(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        if data not in self.name_ids:
            count, used = self.u32(NAMES_COUNT), self.u32(NAME_BYTES_USED)
            self.map[self.name_bytes + used:
                     self.name_bytes + used + len(data)] = data
            self.put("<II", self.names + count * 8, used, len(data))
            self.put("<I", NAME_BYTES_USED, used + len(data))
            self.put("<I", NAMES_COUNT, count + 1)
            self.name_ids[data] = count + 1
        return self.name_ids[data]

    def take_block(self, ring):
        for index in range(self.blocks):
            if self.u32(self.states + index * 4) == 0:
                self.put("<I", self.states + index * 4, ring + 1)
                self.put("<I", BLOCKS_USED, self.u32(BLOCKS_USED) + 1)
                return index
        return None

    def free_blocks(self):
        return sum(self.u32(self.states + i * 4) == 0
                   for i in range(self.blocks))

    def wake(self):
        self.put("<I", WAKE, (self.u32(WAKE) + 1) & 0xFFFFFFFF)
        word = ctypes.c_uint32.from_buffer(self.map, WAKE)
        LIBC.syscall(SYS_FUTEX, ctypes.byref(word), 1, 1000, None, None, 0)


class Ring:
    """A thread's hand on one ring."""

    def __init__(self, arena, index, tid=None, name=b"pyworker"):
        self.arena, self.index = arena, index
        self.at = arena.ring_at(index)
        self.next_id = (index + 1) << 43
        assert arena.u32(self.at + STATE) == FREE
        arena.put("<I", self.at + STATE, CLAIMED)
        self.block, self.sequence, self.offset = None, -1, BLOCK
        assert self.begin_block()
        arena.put("<I", self.at + FIRST_BLOCK, self.block)
        self.publish()
        arena.put("<I", self.at + TID, os.getpid() if tid is None else tid)
        arena.put("<16s", self.at + THREAD_NAME, name)
        if arena.u32(RINGS_HIGH) <= index:
            arena.put("<I", RINGS_HIGH, index + 1)

    def begin_block(self):
        block = self.arena.take_block(self.index)
        if block is None:
            return False
        old, old_offset = self.block, self.offset
        self.block, self.offset = block, 64
        self.sequence += 1
        at = self.arena.block_at(block)
        self.arena.put("<IIII", at, self.index, self.sequence, 0, NO_BLOCK)
        if old is not None:
            self.arena.put("<I", self.arena.block_at(old) + 8, old_offset)
            self.arena.put("<I", self.arena.block_at(old) + 12, block)
        return True

    def publish(self):
        self.arena.put("<Q", self.at + TAIL, self.block << 32 | self.offset)

    def record(self, kind, flags=0, name=0, start=0, end=0, id=0, payload=b""):
        units = 1 + (len(payload) + 31) // 32
        if self.offset + units * 32 > BLOCK and not self.begin_block():
            at = self.at + OVERFLOW
            self.arena.put("<Q", at, self.arena.u64(at) + 1)
            return False
        at = self.arena.block_at(self.block) + self.offset
        self.arena.put("<BBHIQQQ", at, kind, flags, units, name, start, end,
                       id)
        self.arena.map[at + 32:at + 32 + len(payload)] = payload
        self.offset += units * 32
        self.publish()
        return True

    def session(self, generation):
        self.record(SESSION, name=generation)
        self.arena.put("<I", self.at + RING_SESSION, generation)

    def span(self, name, args=None, flags=0, key=None):
        """A whole span that begins and ends now."""
        start = time.monotonic_ns()
        payload = b""
        if key is not None:
            flags |= HAS_DEFERRED
            payload += struct.pack("<Q", key)
        if args is not None:
            flags |= HAS_ARGS
            data = args if isinstance(args, bytes) else json.dumps(
                args).encode()
            payload += struct.pack("<I", len(data)) + data
        self.next_id += 1 << 16
        return self.record(SPAN, flags, self.arena.name(name), start,
                           time.monotonic_ns(), self.next_id, payload)

    def deferred(self, key, args=None):
        payload = struct.pack("<Q", key)
        if args is not None:
            data = json.dumps(args).encode()
            payload += struct.pack("<I", len(data)) + data
        self.record(DEFERRED, HAS_ARGS if args is not None else 0, id=key,
                    payload=payload)

    def open(self, slot, name):
        self.next_id += 1 << 16
        at = self.at + SLOTS + slot * 32
        self.arena.put("<QI", at + 8, time.monotonic_ns(),
                       self.arena.name(name))
        self.arena.put("<Q", at, self.next_id | slot)

    def release(self):
        self.arena.put("<I", self.at + STATE, RELEASED)


def clock_sample():
    before = time.monotonic_ns()
    wall = time.time_ns()
    raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    after = time.monotonic_ns()
    width = after - before
    return (after, 0, after, wall + width // 2, raw + width // 2, width)


def header(kind, size, version=1, magic=MAGIC):
    return struct.pack("<IHHII", magic, version, kind, size, 0)


class Answer:
    def __init__(self, data):
        assert data, "the daemon hung up without an answer"
        magic, self.version, kind, size, _ = struct.unpack_from("<IHHII", data)
        assert (magic, kind, size) == (MAGIC, REPLY, len(data)), data
        (self.code, self.errno, self.written, self.dropped, self.bad_args,
         length, _) = struct.unpack_from("<IiQQQII", data, 16)
        self.text = data[56:].decode()
        assert length == len(data) - 56

    def __repr__(self):
        return f"Answer({self.code}, {self.errno}, {self.text!r})"


def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(30)
    connection.connect(str(path))
    return connection


class Client:
    """One process's sessions with one daemon."""

    def __init__(self, socket_path, arena=None, rings=1):
        self.path = socket_path
        self.arena = arena or Arena()
        self.generation = 0
        self.connection = None
        self.rings = [Ring(self.arena, i) for i in range(rings)]

    def start_message(self, name, session_id="s", abi=1, version=1, pid=None,
                      generation=None, argv=b"prog\0arg\0", token=None):
        texts = [t if isinstance(t, bytes) else t.encode() for t in
                 (session_id, name, "/somewhere", "testhost", argv)]
        body = struct.pack("<II16siiQII", abi, generation or self.generation,
                           token or self.arena.token, pid or os.getpid(),
                           os.getppid(), 0, 0, 0)
        body += struct.pack("<QQqqqq", *clock_sample())
        body += struct.pack("<IIIIII", *(len(t) for t in texts), 0)
        body += b"".join(texts)
        return header(START, 16 + len(body), version) + body

    def start(self, directory, name="host_1.jsonl", fds=None, **options):
        """Sends a StartRequest; returns the Answer, records when it is OK."""
        self.generation += 1
        message = self.start_message(name, **options)
        at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        connection = connect(self.path)
        try:
            socket.send_fds(connection, [message],
                            [self.arena.fd, at] if fds is None else fds)
            answer = Answer(connection.recv(65536))
        finally:
            os.close(at)
        if answer.code != OK:
            connection.close()
            return answer
        self.connection = connection
        self.arena.put("<I", GATE, self.generation)
        for ring in self.rings:
            ring.session(self.generation)
        return answer

    def stop_message(self):
        body = struct.pack("<16sII", self.arena.token, self.generation, 0)
        body += struct.pack("<QQqqqq", *clock_sample())
        return header(STOP, 16 + len(body)) + body

    def stop(self):
        self.arena.put("<I", GATE, 0)
        answer = ask(self.path, self.stop_message())
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        return answer


def ask(path, message, fds=()):
    with connect(path) as connection:
        socket.send_fds(connection, [message], list(fds))
        return Answer(connection.recv(65536))


def query(path):
    text = b""
    with connect(path) as connection:
        connection.send(header(QUERY, 16))
        while True:
            data = connection.recv(65536)
            assert data, "the daemon hung up in the middle of an answer"
            more, length = struct.unpack_from("<II", data, 16)
            assert length == len(data) - 24
            text += data[24:]
            if not more:
                return json.loads(text)


def hangs_up(connection, seconds=30):
    """True when the daemon closes a connection within that time."""
    connection.settimeout(seconds)
    try:
        return connection.recv(65536) == b""
    except socket.timeout:
        return False
    except OSError as error:
        return error.errno == errno.ECONNRESET
