"""The daemon may die: kill -9 at random moments under load, again and again.

A program records numbered spans on two threads as fast as its rings take them
without loss; meanwhile shpd is killed, its keeper too, and upgraded. At the end
each number must be in the file exactly once.

SHP_DAEMON_KILLS is the number of kills a test (default 12). The full run:
  SHP_DAEMON_KILLS=300 python3 tests/integration/daemon_killed_test.py

Seen to fail, each of them, while a daemon that took over did not first make the
two halves of each ring's position even: spans came twice, rings were broken.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from killed_load import Load
from shp_testing import (SHPD, Case, main, published, traced_environment,
                         wait_for)

# Workers die as soon as they are there, until the keeper pauses between two.
BETWEEN_WORKERS = """
import os, signal, subprocess, sys, time

bystander = subprocess.Popen(["sleep", "60"])
daemon = subprocess.Popen(
    [sys.argv[1], "--socket", sys.argv[2] + "/inside.sock", "--log-level",
     "critical"])
children = f"/proc/{daemon.pid}/task/{daemon.pid}/children"
kills = 0
until = time.monotonic() + 20
while kills < 8 and time.monotonic() < until:
    for worker in open(children).read().split():
        os.kill(int(worker), signal.SIGKILL)
        kills += 1
        # Dead and collected: the pause before the next has begun.
        while worker in open(children).read().split():
            time.sleep(0.001)
daemon.terminate()
status = daemon.wait(20)
assert kills == 8 and status in (0, 1), (kills, status)
assert bystander.poll() is None, "a bystander was signalled"
print("alive")
bystander.kill()
"""

KILLS = int(os.environ.get("SHP_DAEMON_KILLS", "12"))


class Killed(Case):
    def setUp(self):
        super().setUp()
        self.load = Load(self)
        self.out.mkdir()
        self.random = random.Random(4)

    def start(self, daemon, **extra):
        process = self.load.start(
            [self.load.program, self.out],
            traced_environment(daemon, **extra))
        wait_for(lambda: daemon.status()["sessions"], 20, "the session")
        return process

    def end_and_check(self, process):
        self.load.check(self.load.end(process), self.out)

    def pause(self):
        time.sleep(self.random.choice([0.002, 0.01, 0.03, 0.1, 0.2]) *
                   self.random.random())

    def test_a_worker_killed_at_random_loses_and_doubles_nothing(self):
        daemon = self.daemon("--log-level", "error")
        process = self.start(daemon)
        for _ in range(KILLS):
            os.kill(daemon.worker(), signal.SIGKILL)
            self.pause()
        self.end_and_check(process)
        self.assertIsNone(daemon.process.poll())

    def test_killed_while_it_stops(self):
        daemon = self.daemon("--log-level", "error")
        for _ in range(max(KILLS // 4, 2)):
            process = self.start(daemon)
            worker = daemon.worker()
            time.sleep(0.05)
            process.stdin.close()
            process.stdin = None
            time.sleep(self.random.random() * 0.02)
            os.kill(worker, signal.SIGKILL)
            self.end_and_check(process)
            for path in self.out.iterdir():
                path.unlink()

    def test_killed_and_ended_at_once_it_still_publishes(self):
        """The end is asked for while there is no worker, or a deaf new one.

        Seen to fail while the keeper ended with the killed worker, and while a
        worker could be ended before it listened: a .pending file was left.
        """
        for _ in range(max(KILLS // 2, 2)):
            daemon = self.daemon("--log-level", "error")
            process = self.start(daemon, SHP_NO_SPAWN="1")
            time.sleep(0.02)
            os.kill(daemon.worker(), signal.SIGKILL)
            time.sleep(self.random.random() * 0.006)
            daemon.stop()
            self.assertEqual(len(published(self.out)), 1)
            process.stdin.close()
            process.stdin = None
            process.wait(20)
            process.stdout.close()
            for path in self.out.iterdir():
                self.assertFalse(path.name.endswith(".pending"), path)
                path.unlink()

    @unittest.skipUnless(os.geteuid() == 0, "makes a pid namespace")
    def test_ended_between_two_workers_it_signals_nobody_else(self):
        """A daemon that keeps dying is ended: in a pid namespace of its own,
        since the fault that this shows was a kill of every process there."""
        script = pathlib.Path(self.folder) / "inside.py"
        script.write_text(BETWEEN_WORKERS)
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
             sys.executable, script, SHPD, self.folder],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
            universal_newlines=True)
        self.assertEqual((done.returncode, done.stdout), (0, "alive\n"),
                         done.stderr)

    def test_a_killed_keeper_is_replaced(self):
        daemon = self.daemon("--log-level", "error")
        process = self.start(daemon)
        keeper = daemon.process.pid
        for number in range(max(KILLS // 4, 2)):
            os.kill(keeper, signal.SIGKILL)
            if number == 0:
                daemon.process.wait()
            before = keeper
            wait_for(lambda: self.status_or_nothing(daemon).get("pid",
                     before) != before, 20, "a new keeper")
            now = wait_for(lambda: self.status_or_nothing(daemon), 20)
            keeper, worker = now["pid"], now["worker_pid"]
            os.kill(worker, signal.SIGKILL)
            wait_for(lambda: self.status_or_nothing(daemon).get(
                "worker_pid", worker) != worker, 20, "a new worker")
            self.pause()
        self.end_and_check(process)
        os.kill(daemon.status()["pid"], signal.SIGTERM)

    def status_or_nothing(self, daemon):
        try:
            return daemon.status()
        except ValueError:
            return {}

    def test_an_upgrade_is_not_felt(self):
        daemon = self.daemon("--log-level", "error")
        process = self.start(daemon)
        for _ in range(max(KILLS // 4, 2)):
            before = daemon.worker()
            os.kill(daemon.process.pid, signal.SIGUSR1)
            wait_for(lambda: self.status_or_nothing(daemon).get(
                "worker_pid", before) != before, 20, "the new one")
            self.pause()
        self.assertEqual(daemon.status()["pid"], daemon.process.pid)
        self.end_and_check(process)

    def test_all_of_it_killed_the_client_hands_its_arena_over_again(self):
        for number in range(max(KILLS // 6, 2)):
            daemon = self.daemon("--log-level", "error")
            process = self.start(daemon, SHP_NO_SPAWN="1")
            time.sleep(self.random.random() * 0.3)
            daemon.kill()
            time.sleep(0.05)
            daemon.start()
            self.end_and_check(process)
            daemon.stop()
            for path in self.out.iterdir():
                path.unlink()

    def test_all_of_it_killed_the_library_starts_another(self):
        daemon = self.daemon("--log-level", "error")
        process = self.start(daemon)
        time.sleep(0.1)
        daemon.kill()
        self.end_and_check(process)

    def test_client_and_worker_killed_together(self):
        daemon = self.daemon("--log-level", "error")
        for _ in range(max(KILLS // 3, 2)):
            process = self.start(daemon)
            time.sleep(self.random.random() * 0.1)
            victims = [daemon.worker(), process.pid]
            self.random.shuffle(victims)
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
                time.sleep(self.random.random() * 0.004)
            process.stdin.close()
            [file] = published(self.out)
            self.assertEqual(file.metadata["end_reason"], "killed")
            self.assertNotIn("broken_rings", file.metadata)
            lost = dict(file.metadata["dropped"])
            lost.pop("unfinished")
            self.assertEqual(sum(lost.values()), 0)
            rich = [s["args"]["n"] for s in file.spans if s["name"] == "rich"]
            self.assertEqual(rich, list(range(len(rich))))
            for path in self.out.iterdir():
                path.unlink()


if __name__ == "__main__":
    main()
