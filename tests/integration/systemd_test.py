"""The units under a real systemd: socket activation, the descriptor store,
Restart=, the watchdog, an upgrade by `systemctl restart`.

Boots a Debian tree with systemd-nspawn, as root. Make the tree once with
  sh tests/support/systemd_tree.sh [DIRECTORY]
and name it in SHP_SYSTEMD_TREE when it is not in /var/tmp/shp-systemd-tree.
SHP_DAEMON_KILLS is the number of kills (default 12, full 300).

Seen to fail: with FileDescriptorStoreMax= taken out of the unit, systemd stores
nothing.
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import unittest

from killed_load import Load
from shp_testing import (BUILD, Case, LIBRARY, SHP, SHPD, SLOW, SOURCE,
                         kill_group, main, published, run, sanitizers,
                         wait_for)

KILLS = int(os.environ.get("SHP_DAEMON_KILLS", "12"))
TREE = pathlib.Path(os.environ.get("SHP_SYSTEMD_TREE",
                                   "/var/tmp/shp-systemd-tree"))
UNITS = {BUILD / "daemon/system-shpd.service": "shpd.service",
         SOURCE / "daemon/units/shpd.socket": "shpd.socket"}


def why_not():
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("systemd-nspawn"):
        return "no systemd-nspawn here"
    if not (TREE / "sbin/init").exists():
        return f"no tree to boot in {TREE} (tests/support/systemd_tree.sh)"
    if sanitizers():
        return "the tree has no sanitizer runtimes"
    return None


@unittest.skipIf(why_not(), why_not())
class Systemd(Case):
    def setUp(self):
        super().setUp()
        self.out.mkdir()
        self.load = Load(self)
        self.random = random.Random(5)
        self.boot()

    def boot(self):
        places = {SHPD: "/usr/local/bin/shpd", SHP: "/usr/local/bin/shp",
                  LIBRARY: "/usr/local/lib/libshp.so"}
        places.update({unit: f"/etc/systemd/system/{name}"
                       for unit, name in UNITS.items()})
        quick = self.folder / "quick.conf"
        quick.write_text("[Service]\nWatchdogSec=2\n")
        places[quick] = "/etc/systemd/system/shpd.service.d/quick.conf"
        binds = [f"--bind-ro={a}:{b}" for a, b in places.items()]
        self.machine = subprocess.Popen(
            ["systemd-nspawn", "-D", TREE, "--volatile=overlay",
             "--register=no", "--keep-unit", "--boot", "--private-network",
             "-M", f"shp{os.getpid()}", f"--bind={self.folder}:/shp-test",
             "--console=pipe", *binds],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(self.machine.stdout.close)
        self.addCleanup(self.machine.wait)
        self.addCleanup(kill_group, self.machine)
        self.leader = wait_for(self.find_leader, 30, "the machine")
        # It outlives a systemd-nspawn that is killed.
        self.addCleanup(os.kill, int(self.leader), signal.SIGKILL)
        # A process of ours in its cgroup too early keeps it from booting.
        private = pathlib.Path("/proc", self.leader, "root",
                               "run/systemd/private")
        wait_for(private.exists, 90, "the boot")
        time.sleep(3 * SLOW)
        wait_for(lambda: self.inside("systemctl", "is-system-running").stdout
                 .strip() in ("running", "degraded"), 90, "the boot")

    def find_leader(self):
        self.assertIsNone(self.machine.poll(), "systemd-nspawn ended")
        path = f"/proc/{self.machine.pid}/task/{self.machine.pid}/children"
        for pid in pathlib.Path(path).read_text().split():
            with contextlib.suppress(OSError):  # one that only makes the next
                if os.readlink(f"/proc/{pid}/exe").endswith("/systemd"):
                    return pid
        return None

    def command(self, *words):
        return ["nsenter", "-t", self.leader, "-m", "-u", "-i", "-n", "-p",
                "-C", *words]

    def inside(self, *words):
        return run(self.command(*words))

    def systemctl(self, *words):
        result = self.inside("systemctl", *words)
        self.assert_ok(result)
        return result.stdout.strip()

    def property(self, name):
        return self.systemctl("show", "shpd.service", "--value", "-p", name)

    def start_load(self):
        return self.load.start(self.command(
            "env", "LD_PRELOAD=/usr/local/lib/libshp.so", "SHP_NO_SPAWN=1",
            "/shp-test/load", "/shp-test/out"))

    def kill(self, number):
        """A signal to shpd; waits until systemd has another."""
        before = self.property("MainPID")
        self.assert_ok(self.inside("sh", "-c", f"kill -{int(number)} {before}"))
        wait_for(lambda: self.property("MainPID") not in (before, "0"), 30,
                 "another shpd")

    def test_sessions_go_on_through_kills_restarts_and_hangs(self):
        self.systemctl("start", "shpd.socket")
        self.assertEqual(self.property("ActiveState"), "inactive")
        process = self.start_load()
        wait_for(lambda: self.property("ActiveState") == "active", 20,
                 "the socket's activation")
        wait_for(lambda: int(self.property("NFileDescriptorStore")) >= 6, 20,
                 "the descriptors in the store")
        for _ in range(KILLS):
            self.kill(signal.SIGKILL)
            time.sleep(self.random.random() * 0.2)
        self.kill(signal.SIGSEGV)
        for _ in range(3):
            before = self.property("MainPID")
            self.systemctl("restart", "shpd.service")
            self.assertNotEqual(self.property("MainPID"), before)
            self.assertGreaterEqual(
                int(self.property("NFileDescriptorStore")), 6)
        self.kill(signal.SIGSTOP)  # the watchdog finds it
        self.load.check(self.load.end(process), self.out)
        wait_for(lambda: self.property("NFileDescriptorStore") == "0", 20,
                 "the store to be empty again")

    def test_stopping_it_publishes(self):
        self.systemctl("start", "shpd.socket")
        process = self.start_load()
        wait_for(lambda: self.property("ActiveState") == "active", 20,
                 "the socket's activation")
        time.sleep(0.5)
        self.systemctl("stop", "shpd.service", "shpd.socket")
        [file] = published(self.out)
        self.assertEqual(file.metadata["end_reason"], "daemon_stopped")
        self.assertFalse(file.metadata["complete"])
        self.assertGreater(len(file.spans), 0)
        process.kill()


if __name__ == "__main__":
    main()
