"""shpd by itself: what a client records comes out as it went in.

Driven by a client made by hand from the contract (arena_client.py).
"""

import json
import os
import struct
import sys
import time

from arena_client import Arena, FREE, OK, OPEN_BEYOND, OVERFLOW, Ring, STATE
from daemon_testing import DaemonCase
from shp_testing import (SLOW, SOURCE, main, pending_paths, published, run,
                         wait_for)


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

    def test_a_client_of_another_time_namespace_keeps_its_own_clock(self):
        daemon = self.daemon()
        code = ("import sys; from arena_client import Client\n"
                "client = Client(sys.argv[1])\n"
                "assert client.start(sys.argv[2]).code == 0\n"
                "client.rings[0].span('there')\n"
                "assert client.stop().written == 1\n")
        command = ["unshare", "--time", "--monotonic", "5000", sys.executable,
                   "-c", code, daemon.socket, self.out]
        before = time.monotonic_ns()
        result = run(command, env={"PYTHONPATH": str(SOURCE / "tests" /
                                                     "support")})
        if "unshare" in result.stderr:
            self.skipTest(result.stderr.strip())
        self.assert_ok(result)
        file = self.one_file()
        ahead = 5000 * 10**9
        for clock in [file.metadata["start_monotonic_ns"],
                      file.spans[0]["start_ns"],
                      *(c["monotonic_ns"] for c in file.clocks)]:
            self.assertLess(before + ahead, clock)
            self.assertLess(clock, time.monotonic_ns() + ahead)

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
        with open(f"/proc/{daemon.worker()}/status") as status:
            peak = next(int(line.split()[1]) for line in status
                        if line.startswith("VmHWM"))
        if SLOW == 1:
            self.assertLess(peak, 64 * 1024)


if __name__ == "__main__":
    main()
