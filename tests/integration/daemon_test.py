"""shpd by itself: a client made by hand from the contract drives a real one."""

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from arena_client import (Arena, Answer, Client, Ring, connect, hangs_up,
                          header, query, ask, CLAIMED, FILE_EXISTS, FREE, IO,
                          OK, OPEN_BEYOND, OVERFLOW, QUERY, REFUSED,
                          RELEASED, SHUTTING_DOWN, SLOTS, STATE, STOP, TAIL,
                          VERSION, HEARTBEAT, BLOCKS_USED, NAME_BYTES_USED)
from shp_testing import (Case, HostFile, SHPD, SLOW, clean_environment,
                         closed_paths, kill_group, main, pending_paths,
                         published, run, wait_for)

NOBODY = 65534


class InChild:
    """Runs body(say) in a forked process; `lines` are what it said."""

    def __init__(self, body, uid=None):
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(reader)
                if uid is not None:
                    os.setgroups([])
                    os.setgid(uid)
                    os.setuid(uid)
                def say(text):
                    os.write(writer, f"{text}\n".encode())
                os.set_inheritable(writer, True)
                body(say)
                status = 0
            except BaseException as error:
                os.write(2, f"child: {error!r}\n".encode())
            finally:
                os._exit(status)
        os.close(writer)
        self.output = os.fdopen(reader)

    def hear(self, text):
        line = self.output.readline().rstrip("\n")
        assert line == text, f"heard {line!r}, not {text!r}"

    def wait(self):
        self.output.close()
        return os.waitpid(self.pid, 0)[1]

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)
        return self.wait()


class DaemonCase(Case):
    needs = (SHPD,)

    def setUp(self):
        super().setUp()
        self.out.mkdir()

    def client(self, daemon, **options):
        return Client(daemon.socket, **options)

    def one_file(self):
        (file,) = published(self.out)
        return file


class Sessions(DaemonCase):
    def test_spans_come_out_as_they_went_in(self):
        client = self.client(self.daemon())
        before = time.monotonic_ns()
        answer = client.start(self.out, session_id="süß")
        self.assertEqual(answer.code, OK, answer)
        self.assertEqual(len(pending_paths(self.out)), 1)
        ring = client.rings[0]
        for number in range(100):
            ring.span("step")
        ring.span('quo"te\n', {"batch": 3, "kind": "décode"})
        answer = client.stop()
        after = time.monotonic_ns()
        self.assertEqual((answer.code, answer.written, answer.dropped),
                         (OK, 101, 0), answer)
        file = self.one_file()
        meta = file.metadata
        self.assertEqual(meta["session_id"], "süß")
        self.assertEqual(meta["end_reason"], "stop")
        self.assertIs(meta["complete"], True)
        self.assertEqual(meta["argv"], ["prog", "arg"])
        self.assertEqual(meta["hostname"], "testhost")
        self.assertEqual(meta["clock_kind"], "monotonic")
        self.assertEqual(meta["pid"], os.getpid())
        self.assertEqual(meta["host_pid"], os.getpid())
        self.assertEqual(meta["uid"], os.getuid())
        self.assertLess(before, meta["start_monotonic_ns"])
        self.assertLess(meta["stop_monotonic_ns"], after)
        self.assertLess(abs(meta["start_realtime_ns"] - time.time_ns()), 60e9)
        self.assertEqual(file.count("step"), 100)
        self.assertEqual(file.spans[100]["name"], 'quo"te\n')
        self.assertEqual(file.spans[100]["args"],
                         {"batch": 3, "kind": "décode"})
        self.assertEqual(file.tids(), {os.getpid()})
        self.assertGreaterEqual(len(file.clocks), 2)
        with open(file.path, "rb") as lines:
            self.assertEqual(len(lines.readline()), 8192)
            self.assertIn({"type": "thread", "tid": os.getpid(),
                           "name": "pyworker"}, map(json.loads, lines))

    def test_one_process_records_again_and_again(self):
        client = self.client(self.daemon(), rings=2)
        for number in range(5):
            self.assertEqual(
                client.start(self.out, f"host_{number}.jsonl").code, OK)
            for ring in client.rings:
                ring.span(f"round {number}")
            self.assertEqual(client.stop().written, 2)
            # Lands after the last drain: nobody's.
            client.rings[0].span("late")
        for number, file in enumerate(published(self.out, 5)):
            self.assertEqual(file.names(), [f"round {number}"] * 2)

    def test_rings_of_finished_threads_are_used_again(self):
        client = self.client(self.daemon(), arena=Arena(rings=2), rings=0)
        client.start(self.out)
        arena = client.arena
        for tid in range(1000, 1060):
            index = wait_for(lambda: next(
                (str(i) for i in range(2)
                 if arena.u32(arena.ring_at(i) + STATE) == FREE), None),
                what="a free ring")
            ring = Ring(arena, int(index), tid)
            ring.session(1)
            for _ in range(10):
                ring.span("short")
            ring.release()
        self.assertEqual(client.stop().written, 600)
        file = self.one_file()
        self.assertEqual(file.tids(), set(range(1000, 1060)))
        for tid in file.tids():
            self.assertEqual(sum(s["tid"] == tid for s in file.spans), 10)

    def test_a_small_pool_goes_round_without_loss(self):
        client = self.client(self.daemon(), arena=Arena(blocks=4))
        client.start(self.out)
        ring = client.rings[0]
        for number in range(30000):
            while client.arena.free_blocks() == 0:
                client.arena.wake()
                time.sleep(0.001)
            self.assertTrue(ring.span("many"))
        answer = client.stop()
        self.assertEqual((answer.written, answer.dropped), (30000, 0))
        self.assertEqual(self.one_file().count("many"), 30000)

    def test_what_the_client_dropped_is_counted(self):
        client = self.client(self.daemon())
        client.start(self.out)
        ring = client.rings[0]
        ring.span("kept")
        client.arena.put("<Q", ring.at + OVERFLOW, 7)
        ring.open(0, "never ends")
        client.arena.put("<I", ring.at + OPEN_BEYOND, 2)
        answer = client.stop()
        self.assertEqual((answer.written, answer.dropped), (1, 10))
        meta = self.one_file().metadata
        self.assertEqual(meta["dropped"]["overflow"], 7)
        self.assertEqual(meta["dropped"]["unfinished"], 3)
        self.assertNotIn("open_spans", meta)

    def test_deferred_args_find_their_spans(self):
        client = self.client(self.daemon())
        client.start(self.out)
        ring = client.rings[0]
        for key in range(1, 2001):
            ring.span("lazy", key=key)
        ring.span("plain")
        client.arena.put("<I", 128, 0)
        for key in range(2000, 1, -1):
            ring.deferred(key, {"key": key})
        answer = client.stop()
        self.assertEqual((answer.written, answer.bad_args), (2001, 1))
        file = self.one_file()
        self.assertEqual(sorted(s["args"].get("key", 0) for s in file.spans
                                if s["name"] == "lazy"),
                         [0] + list(range(2, 2001)))

    def test_long_args_travel_in_pieces(self):
        client = self.client(self.daemon())
        client.start(self.out)
        ring = client.rings[0]
        text = json.dumps({"text": "x" * 100_000}).encode()
        for at in range(0, len(text), 8000):
            piece = text[at:at + 8000]
            ring.record(3, id=5, payload=struct.pack("<I", len(piece)) + piece)
        now = time.monotonic_ns()
        ring.record(2, 2, client.arena.name("long"), now, now, 5)
        self.assertEqual(client.stop().bad_args, 0)
        (span,) = self.one_file().spans
        self.assertEqual(span["args"], {"text": "x" * 100_000})

    def test_bad_args_cost_the_span_nothing_else(self):
        client = self.client(self.daemon())
        client.start(self.out)
        ring = client.rings[0]
        for bad in (b"", b"[1]", b'{"a":1', b'{"a":NaN}', b'{"a":"\xff"}',
                    b'{"a":"x\ny"}', b'{}\n{"type":"span"}',
                    b'{"a":' * 400 + b"1" + b"}" * 400):
            ring.span("bad", bad)
        ring.span("good", b' { "a" : [ 1 ] } ')
        answer = client.stop()
        self.assertEqual((answer.written, answer.bad_args), (9, 8))
        file = self.one_file()
        self.assertEqual([s["args"] for s in file.spans],
                         [{}] * 8 + [{"a": [1]}])

    def test_a_long_session_stays_small(self):
        daemon = self.daemon()
        client = self.client(daemon, arena=Arena(blocks=2048))
        client.start(self.out)
        ring = client.rings[0]
        ring.span("template")
        # Whole blocks of one record, copied: Python makes spans too slowly.
        now = time.monotonic_ns()
        record = struct.pack("<BBHIQQQ", 2, 0, 1, 1, now, now, 1)
        per_block = (32768 - 64) // 32
        blocks = 3000 // SLOW
        for number in range(blocks):
            while client.arena.free_blocks() < 2:
                client.arena.wake()
                time.sleep(0.001)
            ring.begin_block()
            at = client.arena.block_at(ring.block)
            client.arena.map[at + 64:at + 32768] = record * per_block
            ring.offset = 32768
            ring.publish()
        answer = client.stop()
        self.assertEqual((answer.written, answer.dropped),
                         (blocks * per_block + 1, 0))
        with open(f"/proc/{daemon.process.pid}/status") as status:
            peak = next(int(line.split()[1]) for line in status
                        if line.startswith("VmHWM"))
        if SLOW == 1:
            self.assertLess(peak, 64 * 1024)


class Ends(DaemonCase):
    def recording_child(self, daemon, last, before_last=lambda client: None):
        def body(say):
            client = Client(daemon.socket)
            assert client.start(self.out).code == OK
            for _ in range(50):
                client.rings[0].span("done")
            client.rings[0].open(3, "open")
            before_last(client)
            say("ready")
            last(client)
        child = InChild(body)
        child.hear("ready")
        return child

    def check_end(self, reason, complete, **known):
        file = self.one_file()
        self.assertEqual(file.count("done"), 50, file.metadata)
        meta = file.metadata
        self.assertEqual(meta["end_reason"], reason)
        self.assertIs(meta["complete"], complete)
        for key in ("exit_code", "exit_signal"):
            self.assertEqual(meta.get(key), known.get(key))
        self.assertEqual(meta["dropped"]["unfinished"], 1)
        self.assertEqual([s["name"] for s in file.open_spans], ["open"])
        self.assertEqual([s["name"] for s in meta["open_spans"]], ["open"])
        return file

    def test_sigkill(self):
        child = self.recording_child(self.daemon(), lambda c: time.sleep(60))
        child.kill()
        self.check_end("killed", False, exit_signal=9)

    def test_segmentation_fault(self):
        child = self.recording_child(self.daemon(), lambda c: time.sleep(60))
        child.kill(signal.SIGSEGV)
        self.check_end("killed", False, exit_signal=11)

    def test_exit_without_stop(self):
        child = self.recording_child(self.daemon(), lambda c: os._exit(3))
        child.wait()
        self.check_end("exit", True, exit_code=3)

    def test_a_client_that_closed_all_its_descriptors(self):
        def last(client):
            os.closerange(3, 1000)
            time.sleep(0.5)
            client.rings[0].span("after closing")
            time.sleep(60)
        child = self.recording_child(self.daemon(), last)
        time.sleep(1)
        self.assertEqual(closed_paths(self.out), [])
        child.kill()
        file = self.check_end("killed", False, exit_signal=9)
        self.assertEqual(file.count("after closing"), 1)

    def test_exec(self):
        child = self.recording_child(
            self.daemon(), lambda c: os.execv("/bin/sleep", ["sleep", "60"]))
        file = self.check_end("exec", True)
        self.assertEqual(file.metadata["host_pid"], child.pid)
        child.kill()

    def test_a_fork_that_keeps_the_connection_does_not_end_it(self):
        def last(client):
            if os.fork() == 0:
                time.sleep(1.0)
                os._exit(0)
            client.rings[0].span("parent")
            os._exit(0)
        self.recording_child(self.daemon(), last).wait()
        file = self.check_end("exit", True, exit_code=0)
        self.assertEqual(file.count("parent"), 1)

    def test_a_new_session_of_one_process_ends_the_old(self):
        def last(client):
            fresh = Client(client.path)
            assert fresh.start(self.out, "second.jsonl").code == OK
            fresh.rings[0].span("second")
            assert fresh.stop().code == OK
        self.recording_child(self.daemon(), last).wait()
        first, second = published(self.out, 2)
        self.assertEqual(first.metadata["end_reason"], "exec")
        self.assertEqual(first.count("done"), 50)
        self.assertEqual(second.metadata["end_reason"], "stop")
        self.assertEqual(second.names(), ["second"])

    def test_sigterm_of_the_daemon_publishes_everything(self):
        daemon = self.daemon()
        clients = [self.client(daemon) for _ in range(3)]
        children = [self.recording_child(daemon, lambda c: time.sleep(60))
                    for _ in range(0)]
        clients[0].start(self.out)
        clients[0].rings[0].span("kept")
        daemon.stop()
        (file,) = published(self.out)
        self.assertEqual(file.names(), ["kept"])
        self.assertEqual(file.metadata["end_reason"], "daemon_stopped")
        self.assertIs(file.metadata["complete"], False)
        self.assertFalse(daemon.socket.exists())
        self.assertEqual(children, [])

    def test_many_clients_at_once(self):
        daemon = self.daemon()
        def body(say):
            client = Client(daemon.socket)
            name = f"host_{os.getpid()}.jsonl"
            assert client.start(self.out, name).code == OK
            for _ in range(500):
                client.rings[0].span("step")
            assert client.stop().written == 500
        children = [InChild(body) for _ in range(16)]
        self.assertEqual([child.wait() for child in children], [0] * 16)
        for file in published(self.out, 16):
            self.assertEqual(file.count("step"), 500)


class Refusals(DaemonCase):
    def check_refused(self, answer, code, text, errno_value=0):
        self.assertEqual((answer.code, answer.errno), (code, errno_value),
                         answer)
        self.assertIn(text, answer.text)
        self.assertEqual(answer.text.count("\n"), 0)

    def test_a_file_that_exists_stays_as_it_is(self):
        daemon = self.daemon()
        for taken in ("host_1.jsonl", "host_1.jsonl.pending"):
            (self.out / taken).write_text("mine")
            self.check_refused(self.client(daemon).start(self.out),
                               FILE_EXISTS, taken, errno.EEXIST)
            self.assertEqual((self.out / taken).read_text(), "mine")
            self.assertEqual([p.name for p in self.out.iterdir()], [taken])
            (self.out / taken).unlink()

    def test_a_name_that_is_taken_during_the_session_wins(self):
        client = self.client(self.daemon())
        client.start(self.out)
        client.rings[0].span("a")
        (self.out / "host_1.jsonl").write_text("theirs")
        self.check_refused(client.stop(), FILE_EXISTS, "host_1.jsonl",
                           errno.EEXIST)
        self.assertEqual((self.out / "host_1.jsonl").read_text(), "theirs")

    def test_a_directory_that_is_gone(self):
        daemon = self.daemon()
        client = self.client(daemon)
        gone = self.folder / "gone"
        gone.mkdir()
        at = os.open(gone, os.O_RDONLY)
        gone.rmdir()
        self.check_refused(
            client.start(self.out, fds=[client.arena.fd, at]), IO,
            "host_1.jsonl", errno.ENOENT)

    def test_something_that_is_no_directory(self):
        client = self.client(self.daemon())
        with open("/dev/null") as null:
            answer = client.start(self.out,
                                  fds=[client.arena.fd, null.fileno()])
        self.check_refused(answer, IO, "host_1.jsonl", errno.ENOTDIR)

    def test_another_abi_or_protocol_version_is_named(self):
        daemon = self.daemon()
        answer = self.client(daemon).start(self.out, abi=2)
        self.check_refused(answer, VERSION, "ABI version 2")
        answer = self.client(daemon).start(self.out, version=2)
        self.check_refused(answer, VERSION, "version 2")
        client = self.client(daemon, arena=Arena(abi=2))
        self.assertEqual(client.start(self.out).code, VERSION)

    def test_arenas_that_are_not_safe_to_map(self):
        daemon = self.daemon()
        self.check_refused(
            self.client(daemon, arena=Arena(seals=0)).start(self.out),
            REFUSED, "sealed")
        client = self.client(daemon)
        with tempfile.TemporaryFile() as plain:
            plain.truncate(client.arena.size)
            at = os.open(self.out, os.O_RDONLY)
            answer = client.start(self.out, fds=[plain.fileno(), at])
            os.close(at)
        self.check_refused(answer, REFUSED, "memfd")
        client = self.client(daemon)
        client.arena.put("<Q", 64, client.arena.size * 2)
        self.check_refused(client.start(self.out), REFUSED, "size")
        self.check_refused(
            self.client(daemon).start(self.out, token=b"x" * 16), REFUSED,
            "arena")
        self.assertEqual(list(self.out.iterdir()), [])

    def test_names_that_would_leave_the_directory(self):
        daemon = self.daemon()
        for name in ("../x.jsonl", "/x.jsonl", "x", ".x.jsonl", ""):
            self.check_refused(self.client(daemon).start(self.out, name),
                               REFUSED, "file name")

    def test_descriptors_that_are_missing_or_too_many(self):
        daemon = self.daemon()
        client = self.client(daemon)
        self.check_refused(client.start(self.out, fds=[client.arena.fd]),
                           REFUSED, "arena or directory")
        with open("/dev/null") as null:
            many = [null.fileno()] * 10
            self.check_refused(client.start(self.out, fds=many), REFUSED,
                               "cut")

    def test_a_stop_of_no_session(self):
        client = self.client(self.daemon())
        client.generation = 1
        self.check_refused(client.stop(), REFUSED, "no such session")

    def test_a_second_stop_gets_the_first_ones_answer(self):
        client = self.client(self.daemon())
        client.start(self.out)
        client.rings[0].span("a")
        self.assertEqual(client.stop().written, 1)
        self.assertEqual(client.stop().written, 1)

    def test_noise_is_answered_or_dropped_and_harms_nobody(self):
        daemon = self.daemon()
        client = self.client(daemon)
        client.start(self.out)
        good = client.start_message("other.jsonl")
        for noise in (b"x", b"\0" * 16, b"GET / HTTP/1.1", good[:20],
                      good[:-1], good + b"x", header(QUERY, 17) + b"x",
                      header(99, 16), header(STOP, 16), os.urandom(65536)):
            with connect(daemon.socket) as connection:
                connection.send(noise)
                self.assertEqual(Answer(connection.recv(65536)).code, REFUSED)
        with connect(daemon.socket) as connection:
            pass
        client.rings[0].span("unharmed")
        self.assertEqual(client.stop().written, 1)

    def test_a_silent_connection_is_dropped(self):
        daemon = self.daemon()
        with connect(daemon.socket) as connection:
            began = time.monotonic()
            self.assertTrue(hangs_up(connection))
            self.assertGreater(time.monotonic() - began, 3)

    def test_one_user_has_so_many_sessions_and_connections(self):
        daemon = self.daemon("--max-sessions", "2")
        clients = [self.client(daemon) for _ in range(3)]
        # Sessions of one process replace each other, so these are children.
        def body(say):
            client = Client(daemon.socket)
            answer = client.start(self.out, f"host_{os.getpid()}.jsonl")
            say(answer.code)
            time.sleep(30)
        children = [InChild(body) for _ in range(2)]
        for child in children:
            child.hear(str(OK))
        self.check_refused(clients[0].start(self.out), REFUSED, "2 sessions")
        for child in children:
            child.kill()
        published(self.out, 2)
        connections = []
        for _ in range(200):
            connections.append(connect(daemon.socket))
        refused = Answer(connections[-1].recv(65536))
        self.check_refused(refused, REFUSED, "too many connections")
        for connection in connections:
            connection.close()
        self.assertEqual(clients[1].start(self.out).code, OK)
        self.assertEqual(clients[1].stop().code, OK)

    def test_a_full_disk_is_said_and_survived(self):
        self.needs_root()
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs",
                        disk], check=True)
        self.addCleanup(subprocess.run, ["umount", disk])
        daemon = self.daemon()
        client = self.client(daemon)
        self.assertEqual(client.start(disk).code, OK)
        ring = client.rings[0]
        for number in range(5000):
            ring.span("step")
        self.check_refused(client.stop(), IO, "No space", errno.ENOSPC)
        self.assertEqual(closed_paths(disk), [])
        self.assertEqual(daemon.log.read_text().count("No space"), 1)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        (file,) = published(disk)
        self.assertEqual(file.count("step"), 5000)
        answer = client.stop()
        self.assertEqual((answer.code, answer.written), (OK, 5000))

    def needs_root(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")


class Users(DaemonCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        super().setUp()
        self.folder.chmod(0o755)

    def as_nobody(self, daemon, directory):
        """What a StartRequest of `nobody` gets, and its file's owner."""
        def body(say):
            client = Client(daemon.socket)
            answer = client.start(directory)
            say(f"{answer.code} {answer.errno}")
            if answer.code == OK:
                client.rings[0].span("mine")
                say(client.stop().code)
        child = InChild(body, NOBODY)
        first = child.output.readline().split()
        if first[0] == str(OK):
            child.hear(str(OK))
        child.wait()
        return [int(n) for n in first]

    def test_a_roots_daemon_writes_as_its_client(self):
        daemon = self.daemon("--socket-mode", "0666")
        os.chown(self.out, NOBODY, NOBODY)
        self.assertEqual(self.as_nobody(daemon, self.out), [OK, 0])
        file = self.one_file()
        info = os.stat(file.path)
        self.assertEqual((info.st_uid, info.st_gid), (NOBODY, NOBODY))
        self.assertEqual(file.metadata["uid"], NOBODY)

    def test_a_roots_daemon_writes_nothing_that_its_client_could_not(self):
        daemon = self.daemon("--socket-mode", "0666")
        self.out.chmod(0o755)
        self.assertEqual(self.as_nobody(daemon, self.out),
                         [IO, errno.EACCES])
        self.assertEqual(list(self.out.iterdir()), [])

    def test_another_users_session_is_not_seen_and_not_stopped(self):
        daemon = self.daemon("--socket-mode", "0666")
        client = self.client(daemon)
        client.start(self.out)
        stop = client.stop_message()
        def body(say):
            say(len(query(daemon.socket)["sessions"]))
            answer = ask(daemon.socket, stop)
            say(f"{answer.code} {answer.text}")
        child = InChild(body, NOBODY)
        child.hear("0")
        child.hear(f"{REFUSED} not your session")
        child.wait()
        self.assertEqual(len(query(daemon.socket)["sessions"]), 1)
        self.assertEqual(client.stop().code, OK)

    def test_a_users_daemon_serves_nobody_else(self):
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, NOBODY, NOBODY)
        path = home / "s"
        process = subprocess.Popen(
            ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY),
             "--clear-groups", str(SHPD), "--socket", str(path),
             "--socket-mode", "0666"],
            env=clean_environment(), start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(kill_group, process)
        wait_for(path.exists, what="the socket")
        answer = Client(path).start(self.out)
        self.assertEqual(answer.code, REFUSED)
        self.assertIn(f"uid {NOBODY} only", answer.text)


class Hostile(DaemonCase):
    def test_arenas_full_of_nonsense(self):
        daemon = self.daemon()
        good = self.client(daemon)
        good.start(self.out, "good.jsonl")
        def body(say):
            os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
            client = Client(daemon.socket, rings=4)
            assert client.start(self.out, "bad.jsonl").code == OK
            arena, ring = client.arena, client.rings[0]
            for _ in range(2000):
                ring.span("x", {"a": 1})
            import random
            rng = random.Random(5)
            parts = [(0, 4096), (arena.ring_at(0), 4 * 4096),
                     (arena.states, 256), (arena.names, 64),
                     (arena.block_at(0), 3 * 32768)]
            end = time.monotonic() + 3
            while time.monotonic() < end:
                at, size = rng.choice(parts)
                at += rng.randrange(0, size - 8, 4)
                if 64 <= at < 128:
                    continue
                arena.put("<Q", at, rng.choice(
                    (0, 1, 0xFFFFFFFF, 2**64 - 1, 5 << 32 | 64,
                     rng.getrandbits(64), rng.getrandbits(16))))
                if rng.random() < 0.05:
                    arena.wake()
            say("done")
            time.sleep(60)
        child = InChild(body)
        for _ in range(100):
            good.rings[0].span("steady")
            time.sleep(0.01)
        child.hear("done")
        cpu = sum(os.times()[2:4])
        child.kill()
        wait_for(lambda: len(query(daemon.socket)["sessions"]) == 1,
                 what="the hostile session's end")
        self.assertEqual(good.stop().written, 100)
        self.assertIsNotNone(cpu)
        self.assertEqual(HostFile(self.out / "good.jsonl").count("steady"),
                         100)

    def test_a_client_that_wakes_all_the_time_is_served_in_turn(self):
        daemon = self.daemon()
        client = self.client(daemon)
        client.start(self.out)
        def cpu():
            with open(f"/proc/{daemon.process.pid}/stat") as line:
                fields = line.read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])
        before = cpu()
        end = time.monotonic() + 2
        while time.monotonic() < end:
            client.arena.wake()
        spent = (cpu() - before) / os.sysconf("SC_CLK_TCK")
        self.assertLess(spent, 1.0)
        self.assertEqual(client.stop().code, OK)


class Living(DaemonCase):
    def test_query_says_what_is_recorded(self):
        daemon = self.daemon()
        client = self.client(daemon)
        client.start(self.out, session_id="run 7")
        client.rings[0].span("a")
        session = wait_for(lambda: next(
            (s for s in query(daemon.socket)["sessions"]
             if s["written_spans"] == 1), None), what="the span")
        self.assertEqual(session["session_id"], "run 7")
        self.assertEqual(session["pid"], os.getpid())
        self.assertEqual(session["uid"], os.getuid())
        self.assertEqual(session["file"], "host_1.jsonl")
        self.assertEqual(session["directory"], "/somewhere")
        self.assertEqual(session["state"], "recording")
        self.assertEqual(session["dropped_spans"], 0)
        self.assertEqual(session["blocks_used"], 1)
        self.assertGreater(session["file_bytes"], 8192)
        answer = query(daemon.socket)
        self.assertEqual(answer["pid"], daemon.process.pid)
        self.assertEqual(answer["socket"], str(daemon.socket))
        self.assertGreater(answer["uptime_s"], 0)
        client.stop()
        wait_for(lambda: not query(daemon.socket)["sessions"])

    def test_the_heart_beats_while_it_drains(self):
        client = self.client(self.daemon())
        client.start(self.out)
        first = wait_for(lambda: client.arena.u64(HEARTBEAT))
        wait_for(lambda: client.arena.u64(HEARTBEAT) > first)
        self.assertLess(time.monotonic_ns() - client.arena.u64(HEARTBEAT),
                        2_000_000_000 * SLOW)
        client.stop()

    def test_of_many_started_at_once_one_stays(self):
        path = self.folder / "s"
        command = [str(SHPD), "--socket", str(path)]
        all_of_them = [subprocess.Popen(command, env=clean_environment(),
                                        stderr=subprocess.PIPE,
                                        start_new_session=True)
                       for _ in range(8)]
        for process in all_of_them:
            self.addCleanup(process.wait)
            self.addCleanup(process.stderr.close)
            self.addCleanup(kill_group, process)
        wait_for(lambda: sum(p.poll() is None for p in all_of_them) == 1,
                 20, "seven to give way")
        for process in all_of_them:
            if process.poll() is not None:
                self.assertEqual(process.returncode, 0)
                self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(query(path)["sessions"], [])

    def test_a_dead_daemons_socket_is_taken_over(self):
        daemon = self.daemon()
        daemon.kill()
        self.assertTrue(daemon.socket.exists())
        daemon.start()
        self.assertEqual(query(daemon.socket)["sessions"], [])

    def test_what_is_no_socket_is_not_removed(self):
        path = self.folder / "s"
        path.write_text("precious")
        result = run([SHPD, "--socket", path], env=clean_environment())
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr,
                         f"shpd: {path}: is no socket; not removed\n")
        self.assertEqual(path.read_text(), "precious")

    def test_it_ends_when_idle_and_not_before(self):
        daemon = self.daemon("--exit-when-idle", "1")
        client = self.client(daemon)
        client.start(self.out)
        time.sleep(2)
        self.assertIsNone(daemon.process.poll())
        client.stop()
        self.assertEqual(daemon.process.wait(20 * SLOW), 0)
        self.assertFalse(daemon.socket.exists())

    def test_sockets_are_the_users_own(self):
        daemon = self.daemon()
        mode = stat.S_IMODE(os.stat(daemon.socket).st_mode)
        self.assertEqual(mode, 0o600)

    def test_systemd_hands_over_a_socket_and_is_told(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = self.folder / "activated"
        listener.bind(str(path))
        listener.listen(16)
        told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        told.settimeout(20 * SLOW)
        told.bind(str(self.folder / "notify"))
        code = (
            "import os, sys\n"
            f"os.dup2({listener.fileno()}, 3)\n"
            "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()),\n"
            f"  NOTIFY_SOCKET={str(self.folder / 'notify')!r},\n"
            "  WATCHDOG_USEC='400000')\n"
            f"os.execv({str(SHPD)!r}, ['shpd'])\n")
        process = subprocess.Popen([sys.executable, "-c", code],
                                   pass_fds=[listener.fileno(), 3]
                                   if listener.fileno() != 3 else [3],
                                   env=clean_environment(),
                                   start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(kill_group, process)
        self.assertEqual(told.recv(100), b"READY=1")
        self.assertEqual(told.recv(100), b"WATCHDOG=1")
        self.assertEqual(told.recv(100), b"WATCHDOG=1")
        client = Client(path)
        self.assertEqual(client.start(self.out).code, OK)
        client.rings[0].span("a")
        self.assertEqual(client.stop().written, 1)
        process.terminate()
        while (word := told.recv(100)) == b"WATCHDOG=1":
            pass
        self.assertEqual(word, b"STOPPING=1")
        self.assertEqual(process.wait(20 * SLOW), 0)
        self.assertTrue(path.exists())
        listener.close()
        told.close()

    def test_version_and_help(self):
        result = run([SHPD, "--version"], env=clean_environment())
        self.assertEqual((result.returncode, result.stdout),
                         (0, "shpd 0.1.0\n"))
        result = run([SHPD, "--help"], env=clean_environment())
        self.assertEqual(result.returncode, 0)
        self.assertIn("Examples:", result.stdout)
        result = run([SHPD, "--nonsense"], env=clean_environment())
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    main()
