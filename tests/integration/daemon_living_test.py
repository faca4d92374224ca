"""shpd by itself: its socket, its life, what it says of itself."""

import os
import socket
import stat
import subprocess
import sys
import time

from arena_client import Client, HEARTBEAT, OK, query
from daemon_testing import DaemonCase
from shp_testing import (SHPD, SLOW, clean_environment, kill_group, main, run,
                         wait_for)


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
        while ((word := told.recv(100)) == b"WATCHDOG=1"
               or word.startswith(b"FDSTORE")):
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
