"""Full and failing disks: one clear message, spans wait in the rings and then
count as loss, all goes on when there is room, no partial file, stop() raises
what happened and can be called again.

A small tmpfs (as root, in a mount namespace of the test's own) for the real
thing; a shim in shpd (tests/support/programs/failing_disk.c) for errors that no
file system gives on demand.

Seen to fail: with a stop() that forgets its session when it fails, as it was,
the second stop() says that nothing is active.
"""

import errno
import os
import shutil
import subprocess
import sys
import unittest

from shp_testing import (Case, Daemon, SOURCE, clean_environment,
                         closed_paths, host_files, main, run,
                         traced_environment, wait_for)

# Does one line of stdin after the other.
PROGRAM = """
import sys
import service_host_profiling as shp
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    try:
        if word == "start":
            answer = shp.start(rest)
        elif word == "stop":
            answer = shp.stop()
        else:
            for n in range(int(rest)):
                shp.span_end(shp.span_start("step"))
            answer = rest
        print("ok", answer, flush=True)
    except Exception as why:
        print(type(why).__name__, getattr(why, "errno", None), why, flush=True)
"""


class Program:
    def __init__(self, case, daemon, **extra):
        self.case = case
        self.process = subprocess.Popen(
            [sys.executable, case.script(PROGRAM)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=traced_environment(daemon, SHP_NO_SPAWN="1", **extra))
        for cleanup in (self.process.wait, self.process.kill,
                        self.process.stdin.close, self.process.stdout.close):
            case.addCleanup(cleanup)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def do(self, line):
        answer = self.ask(line)
        self.case.assertTrue(answer.startswith("ok "), answer)
        return answer[3:]


class FaultyDaemon(Daemon):
    """A shpd whose file-system calls fail when asked to."""

    def __init__(self, case):
        super().__init__(case.folder)
        self.fault = case.folder / "fault"
        shim = case.folder / "failing_disk.so"
        case.assert_ok(run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim,
                            SOURCE / "tests/support/programs/failing_disk.c",
                            "-ldl"]))
        self.shim = shim

    def environment(self):
        runtime = clean_environment().get("LD_PRELOAD")
        value = f"{runtime}:{self.shim}" if runtime else str(self.shim)
        return clean_environment(LD_PRELOAD=value, FAULT_FILE=self.fault)


class FailingDisk(Case):
    def setUp(self):
        super().setUp()
        self.out.mkdir()

    def complaints(self, daemon):
        return daemon.log.read_text().count("spans wait until")

    def fails_and_goes_on(self, call, number):
        daemon = FaultyDaemon(self)
        daemon.fault.unlink(missing_ok=True)
        with daemon:
            before = self.complaints(daemon)
            program = Program(self, daemon)
            program.do(f"start {self.out}")
            program.do("spans 2000")
            daemon.fault.write_text(f"{call} {number}")
            program.do("spans 20000")
            answer = program.ask("stop")
            self.assertIn(f" {number} ", answer)
            self.assertIn(os.strerror(number), answer)
            self.assertEqual(closed_paths(self.out), [])
            self.assertIn(f" {number} ", program.ask("stop"))
            self.assertEqual(self.complaints(daemon) - before, 1)
            daemon.fault.unlink()
            path = program.do("stop")
            [file] = host_files(self.out)
            self.assertEqual(str(file.path), path)
            self.assertEqual(file.count("step"), 22000)
            self.assertEqual(file.metadata["dropped_spans"], 0)
            self.assertTrue(file.metadata["complete"])
            # And it is over: nothing is left to stop, another may start.
            self.assertTrue(program.ask("stop").startswith("RuntimeError"))
            program.do(f"start {self.out}")
            program.do("stop")

    def test_writes_that_fail(self):
        for number in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS):
            with self.subTest(errno.errorcode[number]):
                self.fails_and_goes_on("pwrite", number)
                shutil.rmtree(self.out)
                self.out.mkdir()

    def test_an_fsync_that_fails(self):
        self.fails_and_goes_on("fsync", errno.EIO)

    def test_a_link_that_fails(self):
        self.fails_and_goes_on("linkat", errno.EROFS)

    def test_a_new_session_after_a_stop_that_failed(self):
        daemon = FaultyDaemon(self)
        with daemon:
            program = Program(self, daemon)
            program.do(f"start {self.out}")
            daemon.fault.write_text(f"linkat {errno.EDQUOT}")
            self.assertIn("OSError", program.ask("stop"))
            daemon.fault.unlink()
            program.do(f"start {self.out}")
            program.do("spans 3")
            program.do("stop")
            [file] = [f for f in host_files(self.out) if f.count("step")]
            self.assertEqual(file.count("step"), 3)

    def test_a_directory_that_is_removed(self):
        daemon = self.daemon()
        program = Program(self, daemon)
        program.do(f"start {self.out}")
        program.do("spans 1000")
        shutil.rmtree(self.out)
        program.do("spans 1000")
        answer = program.ask("stop")
        self.assertFalse(answer.startswith("ok"), answer)
        self.assertIn("pending", answer)
        self.out.mkdir()
        program.do(f"start {self.out}")
        program.do("spans 7")
        program.do("stop")
        [file] = host_files(self.out)
        self.assertEqual(file.count("step"), 7)


@unittest.skipIf(os.geteuid() != 0, "mounting needs root")
class FullDisk(Case):
    def setUp(self):
        super().setUp()
        self.out.mkdir()
        mounted = run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs",
                       self.out])
        if mounted.returncode:
            self.skipTest(mounted.stderr)
        self.addCleanup(run, ["umount", "-l", self.out])

    def test_spans_wait_and_then_count_as_loss(self):
        daemon = self.daemon()
        # 1 MiB is 32 blocks of 1,022 spans; one line is some 130 bytes.
        program = Program(self, daemon, SHP_MEMORY=1)
        program.do(f"start {self.out}")
        program.do("spans 200000")
        wait_for(lambda: "spans wait" in daemon.log.read_text(), 20,
                 "the full disk to be seen")
        answer = program.ask("stop")
        self.assertIn(f" {errno.ENOSPC} ", answer)
        self.assertEqual(closed_paths(self.out), [])
        self.assert_ok(run(["mount", "-o", "remount,size=100m", self.out]))
        program.do("stop")
        [file] = host_files(self.out)
        dropped = file.metadata["dropped"]
        self.assertGreater(dropped["overflow"], 0)
        self.assertEqual(file.count("step") + dropped["overflow"], 200000)
        self.assertEqual(sum(dropped.values()), dropped["overflow"])
        log = daemon.log.read_text()
        self.assertEqual(log.count("No space left on device"), 1)
        self.assertEqual(log.count("can be written again"), 1)

    def test_a_start_on_a_full_disk_says_so(self):
        daemon = self.daemon()
        (self.out / "filler").write_bytes(b"x" * (2 << 20))
        program = Program(self, daemon)
        answer = program.ask(f"start {self.out}")
        self.assertTrue(answer.startswith(f"OSError {errno.ENOSPC} "), answer)
        self.assertEqual([p.name for p in self.out.iterdir()], ["filler"])


if __name__ == "__main__":
    if os.geteuid() == 0 and "SHP_OWN_MOUNTS" not in os.environ:
        os.environ["SHP_OWN_MOUNTS"] = "1"
        if shutil.which("unshare") and run(["unshare", "-m",
                                            "true"]).returncode == 0:
            os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    main()
