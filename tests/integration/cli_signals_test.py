"""`shp run`, signals and terminals: whatever is meant for the program reaches
it, once, and ends or stops us as it does the program."""

import os
import pty
import select
import signal
import sys
import time

from shp_run_case import RunCase, SLEEPER, children, state
from shp_testing import SHP, SLOW, clean_environment, main, wait_for


class Signals(RunCase):
    def test_sent_to_us_reach_the_program(self):
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1",
                     "SIGUSR2"):
            process = self.start(sys.executable, self.script(SLEEPER), name)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(getattr(signal, name))
            out, err = process.communicate(timeout=30 * SLOW)
            self.assertEqual(out, f"got {name}\n", err)
            self.assertEqual(process.returncode, 7)

    def test_that_end_the_program_end_us_and_lose_nothing(self):
        process = self.start(sys.executable, self.script(SLEEPER))
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30 * SLOW)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertIn("1 span in 1 file", err)

    def test_ignored_by_nohup_stay_ignored(self):
        process = self.start(
            sys.executable, self.script(SLEEPER), "SIGTERM",
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30 * SLOW)
        self.assertEqual(out, "got SIGTERM\n")

    def test_ignored_at_start_reach_a_program_that_handles_them(self):
        # As in the background of a shell without job control.
        for name in ("SIGINT", "SIGQUIT", "SIGHUP"):
            number = getattr(signal, name)
            process = self.start(
                sys.executable, self.script(SLEEPER), name,
                preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(number)
            out, _ = process.communicate(timeout=40 * SLOW)
            self.assertEqual(out, f"got {name}\n")

    def test_stop_and_continue_are_passed_on(self):
        # A group in our session: the kernel keeps SIGTSTP from orphaned ones.
        process = self.start(sys.executable, self.script(SLEEPER), "SIGTERM",
                             start_new_session=False, preexec_fn=os.setpgrp)
        process.stdout.readline()
        [child] = children(process.pid, "python")
        process.send_signal(signal.SIGTSTP)
        wait_for(lambda: state(child) == "T", 10, "the program to stop")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: state(child) in "SR", 10, "the program to go on")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30 * SLOW)
        self.assertEqual(out, "got SIGTERM\n")


class Terminal(RunCase):
    """`shp run` in the foreground of a terminal of its own."""

    def on_terminal(self, *command):
        os.chmod(self.folder, 0o700)
        environment = clean_environment(XDG_RUNTIME_DIR=self.folder)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(str(SHP), [str(SHP), "run", "-o", str(self.out), "--",
                                 *[str(c) for c in command]], environment)
        self.addCleanup(os.close, terminal)
        return pid, terminal

    @staticmethod
    def read_until(terminal, wanted, seconds=30):
        text = ""
        end = time.monotonic() + seconds * SLOW
        while wanted not in text and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    text += os.read(terminal, 4096).decode(errors="replace")
                except OSError:
                    break
        return text

    def test_ctrl_c_reaches_the_program_once(self):
        program = self.script("""
import signal, time
import service_host_profiling as shp
got = []
signal.signal(signal.SIGINT, lambda n, f: got.append(n))
shp.span_end(shp.span_start("ready"))
print("ready", flush=True)
end = time.monotonic() + 30
while time.monotonic() < end and not got:
    time.sleep(0.02)
time.sleep(0.5)
print("interrupts", len(got), flush=True)
""")
        pid, terminal = self.on_terminal(sys.executable, program)
        self.assertIn("ready", self.read_until(terminal, "ready"))
        os.write(terminal, b"\x03")
        text = self.read_until(terminal, "next:")
        self.assertIn("interrupts 1", text)
        self.assertIn("1 span in 1 file", text)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_ctrl_c_that_ends_the_program_keeps_its_spans(self):
        program = self.script("""
import time
import service_host_profiling as shp
for i in range(100):
    shp.span_end(shp.span_start("work"))
print("ready", flush=True)
time.sleep(30)
""")
        pid, terminal = self.on_terminal(sys.executable, program)
        self.read_until(terminal, "ready")
        os.write(terminal, b"\x03")
        text = self.read_until(terminal, "next:")
        self.assertIn("KeyboardInterrupt", text)
        self.assertIn("100 spans in 1 file", text)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual(status, -signal.SIGINT)

    def test_ctrl_z_stops_both_and_fg_continues_both(self):
        program = self.script(SLEEPER)
        shell, terminal = self.on_terminal_shell()
        os.write(terminal, (f"'{SHP}' run -o '{self.out}' -- "
                            f"'{sys.executable}' '{program}' SIGTERM\n"
                            ).encode())
        self.assertIn("ready\r\n", self.read_until(terminal, "ready\r\n"))
        [shp] = children(shell, "shp")
        [child] = children(shp, "python")
        os.write(terminal, b"\x1a")
        wait_for(lambda: state(child) == "T" and state(shp) == "T", 10,
                 "both to stop")
        os.write(terminal, b"fg\n")
        wait_for(lambda: state(child) in "SR" and state(shp) in "SR", 10,
                 "both to go on")
        os.kill(shp, signal.SIGTERM)
        text = self.read_until(terminal, "next:")
        self.assertIn("got SIGTERM", text)
        os.write(terminal, b"exit $?\n")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]), 7)

    def on_terminal_shell(self):
        os.chmod(self.folder, 0o700)
        environment = clean_environment(XDG_RUNTIME_DIR=self.folder, PS1="$ ")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"],
                      environment)
        self.addCleanup(os.close, terminal)
        return pid, terminal


if __name__ == "__main__":
    main()
