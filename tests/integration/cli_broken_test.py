"""`shp merge-dir` on traces that are broken, hostile, or not to be read at all.

One table: what lies there, and what becomes of it. Beside each lies a good
trace, which must get its span; the bad one keeps its every byte; no file more
than before is left; and what is refused is one line that names file and byte.
"""

import gzip
import json
import os
import subprocess
import tempfile
import time
import zlib

from merge_case import BASE, ERROR, Merge, session, trace
from shp_testing import SHP, clean_environment, main, run, sanitizers

GOOD = trace()
HEAD = b'{"baseTimeNanoseconds": %d, "traceEvents": [' % BASE
EVENT = (b'{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 7, "tid": 7, '
         b'"ts": 1000, "dur": 8000, "args": {%s}}')


def one(name=b"op", args=b"", tail=b"]}"):
    return HEAD + EVENT % (name, args) + tail


def cut(data, at):
    return data[:at]


def bomb(mebibytes):
    """A gz of a trace that is that much larger than its file."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    start, end = (EVENT % (b"op", b'"x": "|"')).split(b"|")
    block = b" " * (1 << 20)
    parts = [pack.compress(HEAD + EVENT % (b"op", b"") + b"," + start)]
    parts += [pack.compress(block) for _ in range(mebibytes)]
    parts += [pack.compress(end + b"]}"), pack.flush()]
    return b"".join(parts)


GZ = gzip.compress(GOOD)
DEEP = b"[" * 512 + b"]" * 512
TWO = HEAD + EVENT % (b"a", b"") + b"," + EVENT % (b"b", b"") + b"]}"

# Refused: what, file name, its bytes, the line behind "NAME: ".
REFUSED = [
    ("an array cut off inside an event", "x.json", cut(GOOD, len(GOOD) - 60),
     f"byte {len(GOOD) - 60}: file ends inside an event (cut off?)"),
    ("an array cut off behind an event", "x.json", one(tail=b",\n"),
     f"byte {len(one(tail=b''))+ 2}: file ends inside the events array "
     "(cut off?)"),
    ("an Ascend array without its bracket", "x.json",
     b'[{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": '
     b'"Python"}}', "byte 74: file ends inside the events array (cut off?)"),
    ("an object cut off behind its array", "x.json", one(tail=b"]"),
     f"byte {len(one(tail=b']'))}: file ends inside the trace's object "
     "(cut off?)"),
    ("gz that is cut off", "x.json.gz", cut(GZ, len(GZ) - 9),
     f"compressed byte {len(GZ) - 9}: gzip file is cut off"),
    ("gz with a wrong checksum", "x.json.gz",
     GZ[:-8] + bytes([GZ[-8] ^ 1]) + GZ[-7:], None),
    ("gz of a cut trace", "x.json.gz", gzip.compress(cut(GOOD, 100)),
     "byte 100: file ends inside an event (cut off?)"),
    ("gz followed by rubbish", "x.json.gz", GZ + b"rubbish", None),
    ("an empty file", "x.json", b"", "byte 0: file is empty"),
    ("white space alone", "x.json", b" \n", "byte 0: file is empty"),
    ("an empty gz", "x.json.gz", gzip.compress(b""), "byte 0: file is empty"),
    ("an unescaped quote", "x.json", one(b'a "b" c'),
     f"byte {len(HEAD) + 41}: no comma after an event's value (unescaped "
     "quote?)"),
    ("NaN for a base", "x.json", b'{"baseTimeNanoseconds": NaN, "traceEvents": '
     b"[" + EVENT % (b"a", b"") + b"]}",
     "its baseTimeNanoseconds is no integer; give --clock-offset-ns or "
     "--clock-anchors-ns"),
    ("a base past 64 bits", "x.json", b'{"baseTimeNanoseconds": '
     b'99999999999999999999, "traceEvents": [' + EVENT % (b"a", b"") + b"]}",
     "its baseTimeNanoseconds is no integer; give --clock-offset-ns or "
     "--clock-anchors-ns"),
    ("traceEvents twice", "x.json",
     TWO[:-1] + b',"traceEvents": []}', f"byte {len(TWO) + 15}: traceEvents is "
     "there twice"),
    ("two traces in one file", "x.json", TWO + b"\n" + TWO,
     f"byte {len(TWO) + 1}: text after the trace's end"),
    ("a member without a value", "x.json", b'{"a": , "traceEvents": []}',
     "byte 6: member has no value"),
    ("events without commas", "x.json",
     TWO.replace(b"}},{", b"}} {"),
     f"byte {len(HEAD + EVENT % (b'a', b'')) + 1}: no comma after an event"),
]

# Taken, odd as they are, and every byte of theirs kept.
TAKEN = [
    ("invalid UTF-8", one(b"torch/config.py(0): \xff\xfe\x80")),
    ("raw control characters", one(b"a\x01\x1b\nb")),
    ("inf and NaN", one(args=b'"a": inf, "b": -inf, "c": NaN')),
    ("bad escapes", one(args=rb'"path": "C:\new\xfolder\q"')),
    ("duplicate keys", one(args=b'"a": 1, "a": 2').replace(
        b'"tid": 7', b'"tid": 7, "tid": 7')),
    ("512-deep nesting", one(args=b'"deep": ' + DEEP)),
    ("100,000-deep nesting", one(args=b'"deep": ' + b"[" * 100_000
                                 + b"]" * 100_000)),
    ("a 10 MB string", one(b"n" * 10_000_000)),
    ("a 10 MB string in args", one(args=b'"s": "%s"' % (b"s" * 10_000_000))),
    ("a 40 MB string before the events", b'{"s": "' + b"s" * 40_000_000
     + b'",' + one()[1:]),
    ("huge integers", one(args=b'"id": ' + b"9" * 400)),
    ("a trailing comma", TWO[:-2] + b",]}"),
    ("a byte order mark", b"\xef\xbb\xbf" + TWO),
    ("a broken time", HEAD + EVENT % (b"a", b"") + b',{"ph": "X", "pid": 7, '
     b'"tid": 7, "ts": inf, "dur": nan, "name": "b"}]}'),
]


class Table(Merge):
    def setUp(self):
        super().setUp()
        self.good = self.put("good.json", GOOD)
        self.put_host()

    def check_good(self):
        self.assertEqual(self.spans_of(self.good), [(7, 2000, 10)])

    def test_what_is_refused_is_one_line_with_file_and_byte(self):
        for what, name, data, message in REFUSED:
            with self.subTest(what):
                self.good.write_bytes(GOOD)
                path = self.torch / name
                path.write_bytes(data)
                listed = sorted(os.listdir(self.torch))
                result = self.merge()
                self.assertEqual(result.returncode, 1, result.stderr)
                lines = result.stderr.splitlines()
                self.assertEqual(len(lines), 1, result.stderr)
                start = f"{ERROR}{name}: "
                self.assertTrue(lines[0].startswith(start), lines[0])
                if message is None:
                    self.assertRegex(lines[0], r"compressed byte \d+: ")
                else:
                    self.assertEqual(lines[0], start + message)
                self.assertEqual(path.read_bytes(), data)
                self.assertEqual(sorted(os.listdir(self.torch)), listed)
                self.check_good()
                path.unlink()

    def test_what_viewers_open_is_taken_and_every_byte_kept(self):
        for what, data in TAKEN:
            for name in ("x.json", "x.json.gz"):
                with self.subTest(what, name=name):
                    path = self.put(name, data)
                    self.expect(self.merge(), 0, None, "")
                    after = path.read_bytes()
                    if name.endswith(".gz"):
                        after = gzip.decompress(after)
                    self.check_bytes(data, after)
                    path.unlink()

    def check_bytes(self, before, after):
        """`after` is `before` with one piece more, and the piece is ours."""
        at = after.index(b'{"ph":"M","cat":"shp"')
        size = len(after) - len(before)
        self.assertGreater(size, 0)
        start = next(i for i in range(at, at - 3, -1)
                     if after[:i] + after[i + size:] == before)
        piece = after[start:start + size].strip().strip(b",")
        events = json.loads(b"[" + piece + b"]")
        self.assertEqual({e["cat"] for e in events}, {"shp"})
        self.assertEqual([(e["ts"], e["dur"]) for e in events
                          if e["ph"] == "X"], [(2000, 10)])

    def test_gz_of_several_members_is_one_trace(self):
        half = len(TWO) // 2
        path = self.torch / "x.json.gz"
        path.write_bytes(gzip.compress(TWO[:half]) + gzip.compress(TWO[half:]))
        self.expect(self.merge(), 0, None, "")
        self.check_bytes(TWO, gzip.decompress(path.read_bytes()))

    def test_a_gz_bomb_costs_time_and_no_memory(self):
        path = self.torch / "x.json.gz"
        path.write_bytes(bomb(512))
        self.assertLess(path.stat().st_size, 1 << 20)
        with tempfile.TemporaryFile() as usage:
            process = subprocess.Popen(
                ["/usr/bin/env", "python3", "-c",
                 "import resource,subprocess,sys;"
                 "r=subprocess.run(sys.argv[1:]);"
                 "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,"
                 "file=sys.stderr);sys.exit(r.returncode)",
                 str(SHP), "merge-dir", str(self.host), "--torch-dir",
                 str(self.torch)],
                stdout=subprocess.DEVNULL, stderr=usage,
                env=clean_environment())
            self.assertEqual(process.wait(300), 0)
            usage.seek(0)
            kib = int(usage.read().split()[-1])
        if not sanitizers():
            self.assertLess(kib, 64 * 1024)
        self.check_good()

    def test_kinds_of_files_that_are_no_files(self):
        (self.torch / "folder.json").mkdir()
        (self.torch / "link.json").symlink_to("good.json")
        (self.torch / "loop.json").symlink_to("loop.json")
        (self.torch / "up").symlink_to("..")
        os.mkfifo(self.torch / "pipe.json")
        self.expect(self.merge(), 0, None, "")
        result = self.merge()
        for line in ("link.json: skipped: is a link",
                     "loop.json: skipped: is a link",
                     "up: skipped: is a link",
                     "pipe.json: skipped: is no regular file"):
            self.assertIn(line + "\n", result.stdout)
        self.check_good()

    def test_a_file_that_grows_while_it_is_read_is_refused(self):
        # Large enough to be still read when it changes.
        more = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 8, "tid": 8,
                 "ts": 1000 + i, "dur": 0.5} for i in range(300_000)]
        path = self.torch / "x.json"
        path.write_bytes(trace(8, more=more))
        self.put_host("8.jsonl", session(8))
        with open(path, "ab") as writer:
            process = subprocess.Popen(
                [SHP, "merge-dir", self.host, "--torch-dir", self.torch],
                env=clean_environment(), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
            while process.poll() is None:
                writer.write(b"\n")
                writer.flush()
                time.sleep(0.001)
            _, errors = process.communicate()
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn(f"{ERROR}x.json: changed while it was read\n", errors)
        self.assertNotIn(b'"shp"', path.read_bytes())
        self.check_good()


class AsAnotherUser(Merge):
    """Permissions do not stop root: the program runs as a user of its own."""

    USER = 65534

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root may run a program as another user")
        os.chmod(self.folder, 0o755)

    def merge(self, *arguments):
        process = subprocess.run(
            [SHP, "merge-dir", self.host, "--torch-dir", self.torch,
             *arguments], env=clean_environment(), user=self.USER,
            group=self.USER, extra_groups=[], capture_output=True, text=True,
            timeout=60)
        return process

    def test_no_permission_is_one_line_and_the_others_are_done(self):
        os.chown(self.torch, self.USER, self.USER)
        good = self.put("good.json", GOOD)
        secret = self.put("secret.json", GOOD)
        secret.chmod(0)
        self.put("below/a.json", GOOD)
        (self.torch / "below").chmod(0)
        self.put_host()
        self.expect(self.merge(), 1, None,
                    f"{ERROR}below: Permission denied\n"
                    f"{ERROR}secret.json: Permission denied\n")
        self.assertEqual(secret.read_bytes(), GOOD)
        self.assertEqual(self.spans_of(good), [(7, 2000, 10)])

    def test_a_read_only_directory_is_one_line_or_goes_elsewhere(self):
        path = self.put("sub/a.json.gz", GOOD)
        before = path.read_bytes()
        self.put_host()
        self.expect(self.merge(), 1, None,
                    f"{ERROR}sub/a.json.gz: sub: Permission denied\n")
        self.out.mkdir()
        os.chown(self.out, self.USER, self.USER)
        self.expect(self.merge("--output-dir", self.out), 0, None, "")
        self.assertEqual(self.spans_of(self.out / "sub" / "a.json.gz"),
                         [(7, 2000, 10)])
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual(os.listdir(self.torch / "sub"), ["a.json.gz"])

    def test_the_owner_and_mode_of_a_trace_are_kept(self):
        path = self.put("a.json", GOOD)
        os.chown(path, 1234, 4321)
        path.chmod(0o640)
        self.put_host()
        self.expect(Merge.merge(self), 0, None, "")
        status = path.stat()
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o7777),
                         (1234, 4321, 0o640))


class NoRoom(Merge):
    """A full disk is a limit on the size of files, which ends a write alike."""

    def test_leaves_the_original_and_says_so(self):
        for name, limit in (("a.json", 65536), ("a.json.gz", 8192)):
            with self.subTest(name):
                path = self.put(name, GOOD)
                before = path.read_bytes()
                self.put_host(made=session(spans=[
                    (2000 + i / 10, 0.05) for i in range(20_000)]))
                result = run(
                    ["python3", "-c", "import os,resource,signal,sys;"
                     "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
                     "size=int(sys.argv[1]);"
                     "resource.setrlimit(resource.RLIMIT_FSIZE,(size,size));"
                     "os.execv(sys.argv[2], sys.argv[2:])", limit, SHP,
                     "merge-dir",
                     self.host, "--torch-dir", self.torch],
                    env=clean_environment())
                self.expect(result, 1, "", None)
                self.assertRegex(
                    result.stderr, rf"^{ERROR}{name}: [^\n]*"
                    r"File too large\n$")
                self.assertEqual(path.read_bytes(), before)
                self.assertEqual(os.listdir(self.torch), [name])
                path.unlink()


if __name__ == "__main__":
    main()
