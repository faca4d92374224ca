"""`shp top` on processes that record while it looks."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time

from shp_run_case import RunCase
from shp_testing import (Case, SHP, SLOW, clean_environment, main, run,
                         traced_environment, wait_for)

# Spans of 5 ms in a loop of little more, "half" on a second thread for half of
# its time, and a counter. Ends with its input, or after as many seconds as it is told.
LOADED = """
import sys, threading, time
import service_host_profiling as shp
ended = False
def half():
    while not ended:
        with shp.span("half"):
            time.sleep(0.01)
        time.sleep(0.01)
thread = threading.Thread(target=half)
thread.start()
def loop():
    n = 0
    while not ended:
        with shp.span("step"):
            time.sleep(0.005)
        n += 1
        shp.counter("n", n)
worker = threading.Thread(target=loop)
worker.start()
print("ready", flush=True)
time.sleep(float(sys.argv[1])) if sys.argv[1:] else sys.stdin.read()
ended = True
"""

# More spans than its ring holds, at a word; then few.
FLOODS = """
import sys, time
import service_host_profiling as shp
shp.span_end(shp.span_start("before"))
print("ready", flush=True)
sys.stdin.readline()
for i in range(2_000_000):
    shp.span_end(shp.span_start("flood"))
print("flooded", flush=True)
for line in sys.stdin:
    pass
"""


class Traced(Case):
    def begin(self, text, environment, *words):
        process = subprocess.Popen(
            [sys.executable, str(self.script(text)), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def traced(self, daemon, text=LOADED, **environment):
        return self.begin(text, traced_environment(
            daemon, SHP_OUTPUT_DIR=self.out, **environment))

    def top(self, *words, env=None):
        result = run([SHP, "top", *words], env=env or clean_environment())
        self.assert_ok(result)
        return result.stdout

    def looks(self, *words, env=None):
        return [json.loads(line)
                for line in self.top("--json", *words, env=env).splitlines()]


def row(look, name, of="names"):
    return next((r for r in look[of] if r["name"] == name), None)


class Top(Traced):
    def test_numbers_are_of_the_time_between_two_looks(self):
        daemon = self.daemon()
        process = self.traced(daemon)
        begin = time.monotonic()
        looks = self.looks("--socket", daemon.socket, "-n", "3", "-i", "1")
        took = time.monotonic() - begin
        self.assertEqual(len(looks), 3)
        self.assertLess(sum(look["seconds"] for look in looks), took)
        for look in looks:
            step = row(look, "step")
            # Sleeps are never shorter than they say.
            self.assertGreaterEqual(step["p50_ns"], 0.98 * 5_000_000)
            self.assertLessEqual(step["total_ns"],
                                 1.3 * SLOW * look["seconds"] * 1e9)
            self.assertAlmostEqual(step["per_s"],
                                   step["spans"] / look["seconds"], 2)
            self.assertGreater(step["thread_share"],
                               row(look, "half")["thread_share"])
            self.assertLess(row(look, "half")["thread_share"], 0.75)
            [session] = look["sessions"]
            self.assertEqual(session["pid"], process.pid)
            self.assertEqual(session["new_spans"], step["spans"] +
                             row(look, "half")["spans"])
        # The counter goes up by one a step, so its last values tell how many
        # steps there were between the looks.
        counts = [row(look, "n", "marks")["last"] for look in looks]
        for earlier, later, look in zip(counts, counts[1:], looks[1:]):
            self.assertLessEqual(
                abs(later - earlier - row(look, "step")["spans"]), 2)

    def test_a_session_that_comes_later_is_there_from_its_first_span(self):
        daemon = self.daemon()
        top = subprocess.Popen(
            [str(SHP), "top", "--json", "-i", "0.2", "--socket",
             str(daemon.socket)], stdout=subprocess.PIPE, text=True,
            env=clean_environment())
        self.addCleanup(top.communicate)
        self.addCleanup(top.kill)
        self.assertEqual(json.loads(top.stdout.readline())["sessions"], [])
        process = self.traced(daemon)
        steps, look = 0, None

        def seen(wanted):
            nonlocal steps, look
            look = json.loads(top.stdout.readline())
            steps += (row(look, "step") or {"spans": 0})["spans"]
            return wanted()
        wait_for(lambda: seen(lambda: steps >= 20), 20, "its spans")
        self.assertEqual(row(look, "n", "marks")["last"], steps)
        process.communicate("")
        wait_for(lambda: seen(lambda: look["sessions"][0]["ended"]), 20,
                 "its end")
        [path] = [p for p in os.listdir(self.out) if p.endswith(".jsonl")]
        text = (self.out / path).read_text()
        self.assertEqual(steps, text.count('"name":"step"'))
        wait_for(lambda: seen(lambda: not look["sessions"]), 20,
                 "it to be forgotten")

    def test_losses_are_told_as_they_happen(self):
        daemon = self.daemon()
        process = self.traced(daemon, FLOODS, SHP_MEMORY="8")
        worker = daemon.worker()
        top = subprocess.Popen(
            [str(SHP), "top", "--json", "-i", "0.2", "--socket",
             str(daemon.socket)], stdout=subprocess.PIPE, text=True,
            env=clean_environment())
        self.addCleanup(top.communicate)
        self.addCleanup(top.kill)
        first = json.loads(top.stdout.readline())
        self.assertEqual(first["sessions"][0]["dropped"], 0)
        os.kill(worker, signal.SIGSTOP)
        process.stdin.write("\n")
        process.stdin.flush()
        flooded = process.stdout.readline()
        os.kill(worker, signal.SIGCONT)
        self.assertEqual(flooded, "flooded\n")
        fresh, last = 0, {}

        def told():
            nonlocal fresh, last
            [last] = json.loads(top.stdout.readline())["sessions"]
            fresh += last["new_dropped"]
            return last["spans"] + last["dropped"] == 2_000_001
        wait_for(told, 30, "all spans to be written or counted as lost")
        self.assertGreater(last["dropped"], 0)
        self.assertEqual(fresh, last["dropped"])

    def test_only_one_process(self):
        daemon = self.daemon()
        first = self.traced(daemon)
        self.traced(daemon)
        [look] = self.looks("--socket", daemon.socket, "-n", "1", "-i", "0.5",
                            "--pid", str(first.pid))
        self.assertEqual([s["pid"] for s in look["sessions"]], [first.pid])
        [both] = self.looks("--socket", daemon.socket, "-n", "1", "-i", "0.5")
        self.assertEqual(len(both["sessions"]), 2)
        self.assertEqual(row(both, "step")["threads"], 2)

    def test_a_page_fits_its_terminal(self):
        daemon = self.daemon()
        self.traced(daemon)
        primary, secondary = pty.openpty()
        self.addCleanup(os.close, primary)
        fcntl.ioctl(secondary, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, 100, 0, 0))
        top = subprocess.Popen(
            [str(SHP), "top", "-n", "2", "-i", "0.3", "--socket",
             str(daemon.socket)], stdout=secondary, env=clean_environment())
        os.close(secondary)
        text = b""
        while True:
            try:
                piece = os.read(primary, 65536)
            except OSError:  # its last writer is gone
                break
            if not piece:
                break
            text += piece
        self.assertEqual(top.wait(), 0)
        pages = text.decode().split("\x1b[H\x1b[2J")[1:]
        self.assertEqual(len(pages), 2)
        for page in pages:
            lines = page.split("\r\n")
            self.assertLessEqual(len(lines), 24)
            self.assertLessEqual(max(map(len, lines)), 100)
            self.assertTrue([x for x in lines if x.endswith("  step")])
            self.assertTrue([x for x in lines if x.endswith("  n")])

    def test_ends_well_when_nobody_reads_any_more(self):
        daemon = self.daemon()
        with subprocess.Popen(
                [str(SHP), "top", "--json", "-i", "0.1", "--socket",
                 str(daemon.socket)], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=clean_environment()) as top:
            top.stdout.readline()
            top.stdout.close()
            self.assertIn(top.wait(20 * SLOW), (0, -signal.SIGPIPE))
            self.assertEqual(top.stderr.read(), b"")

    def test_a_daemon_that_comes_again_is_looked_at_again(self):
        daemon = self.daemon()
        with subprocess.Popen(
                [str(SHP), "top", "--json", "-i", "0.2", "--socket",
                 str(daemon.socket)], stdout=subprocess.PIPE, text=True,
                env=clean_environment()) as top:
            self.addCleanup(top.kill)
            top.stdout.readline()
            daemon.stop()
            self.assertEqual(json.loads(top.stdout.readline())["sessions"], [])
            daemon.start()
            self.traced(daemon)
            wait_for(lambda: row(json.loads(top.stdout.readline()), "step"),
                     20, "spans behind the new daemon")
            top.kill()

    def test_without_a_daemon_is_one_line_and_1(self):
        result = run([SHP, "top", "--socket", self.folder / "none.sock"],
                     env=clean_environment())
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, "shp top: no daemon answers at "
                         f"{self.folder}/none.sock\n")

    def test_bad_options_are_told(self):
        for words in (["--interval", "0"], ["--interval", "x"],
                      ["--sort", "colour"], ["--pid", "me"]):
            with self.subTest(words):
                result = run([SHP, "top", *words], env=clean_environment())
                self.assertEqual(result.returncode, 2)
                self.assertIn(words[0], result.stderr)


class BesideARun(RunCase, Traced):
    def test_finds_what_a_run_records(self):
        """`shp run` has a daemon of its own, at a socket that nobody else would
        look at. Seen to fail before daemon_sockets() looked for run-*.sock."""
        environment = clean_environment(XDG_RUNTIME_DIR=self.folder)
        nobody = run([SHP, "top", "-n", "1"], env=environment)
        self.assertEqual(nobody.returncode, 1, nobody.stdout)
        first = self.start(sys.executable, self.script(LOADED), "5")
        wait_for(lambda: " 1 session\n" in run([SHP, "status"],
                                               env=environment).stdout,
                 20, "the run's daemon and session")
        [look] = self.looks("-n", "1", "-i", "1", env=environment)
        self.assertEqual(len(look["sessions"]), 1)
        self.assertTrue(look["sessions"][0]["file"].startswith(
            os.path.realpath(self.out)))
        self.assertGreater(row(look, "step")["spans"], 0)
        status = run([SHP, "status"], env=environment)
        self.assertIn(f"/run-{first.pid}.sock: 1 session\n", status.stdout)


if __name__ == "__main__":
    main()
