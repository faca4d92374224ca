"""`shp run` in front of ordinary programs: status, signals, terminal, files."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
import unittest

from shp_testing import (Case, SHP, SLOW, clean_environment, closed_paths,
                         host_files, main, run, wait_for)

SPANS = """
import os, sys, time
import service_host_profiling as shp
for i in range(int(sys.argv[1])):
    shp.span_end(shp.span_start("work"))
"""

# Says when it is ready, records, and ends on the signals that it is told of.
SLEEPER = """
import signal, sys, time
import service_host_profiling as shp
got = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda n, f: got.append(n))
shp.span_end(shp.span_start("ready"))
print("ready", flush=True)
end = time.monotonic() + 30
while time.monotonic() < end and not got:
    time.sleep(0.02)
time.sleep(0.3)
print("got", *[signal.Signals(n).name for n in got], flush=True)
sys.exit(7)
"""


class RunCase(Case):
    def shp_run(self, *command, options=(), **how):
        how.setdefault("env", clean_environment(
            XDG_RUNTIME_DIR=self.folder))
        os.chmod(self.folder, 0o700)
        return run([SHP, "run", "-o", self.out, *options, "--", *command],
                   cwd=self.folder, **how)

    def start(self, *command, **how):
        os.chmod(self.folder, 0o700)
        process = subprocess.Popen(
            [str(SHP), "run", "-o", str(self.out), "--",
             *[str(c) for c in command]],
            env=clean_environment(XDG_RUNTIME_DIR=self.folder),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True, **how)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class ExitStatus(RunCase):
    def test_is_the_programs(self):
        for status in (0, 1, 3, 255):
            result = self.shp_run("sh", "-c", f"exit {status}")
            self.assertEqual(result.returncode, status)

    def test_ends_by_the_signal_that_ended_the_program(self):
        for name in ("SIGKILL", "SIGTERM", "SIGSEGV", "SIGPIPE"):
            result = self.shp_run("sh", "-c", f"kill -{name[3:]} $$")
            self.assertEqual(result.returncode, -getattr(signal, name))

    def test_is_128_and_the_signal_to_a_shell(self):
        result = run(["sh", "-c", f"{SHP} run -o {self.out} -- sh -c "
                      "'kill -TERM $$'; echo $?"], env=clean_environment(
                          XDG_RUNTIME_DIR=self.folder))
        self.assertEqual(result.stdout, "143\n")

    def test_is_127_for_a_command_that_is_not_there(self):
        result = self.shp_run("no-such-command")
        self.assertEqual(result.returncode, 127)
        self.assertEqual(result.stderr, "shp run: no-such-command: "
                         "No such file or directory\n")

    def test_is_126_for_a_file_that_is_not_executable(self):
        result = self.shp_run(self.script("data"))
        self.assertEqual(result.returncode, 126)
        self.assertIn("Permission denied", result.stderr)

    def test_is_125_where_the_output_directory_cannot_be(self):
        self.out.write_text("a file")
        result = self.shp_run("true")
        self.assertEqual(result.returncode, 125)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn(str(self.out), result.stderr)

    def test_is_2_without_a_command(self):
        self.assertEqual(run([SHP, "run"]).returncode, 2)


class Arguments(RunCase):
    def test_reach_the_program_as_they_are(self):
        words = ["-o", "--help", "--", "a b", "", "-q"]
        result = self.shp_run(sys.executable, "-c",
                              "import sys; print(sys.argv[1:])", *words)
        self.assertEqual(result.stdout, f"{words}\n")

    def test_may_come_without_the_two_dashes(self):
        result = run([SHP, "run", "-o", self.out, "-q", "printf", "%s-%s",
                      "-o", "--help"],
                     env=clean_environment(XDG_RUNTIME_DIR=self.folder))
        self.assertEqual(result.stdout, "-o---help")

    def test_standard_input_is_the_programs(self):
        path = self.script("hello\n", "input")
        with open(path) as stream:
            result = self.shp_run("cat", stdin=stream)
        self.assertEqual(result.stdout, "hello\n")

    def test_help_shows_an_example(self):
        result = run([SHP, "run", "--help"])
        self.assertEqual(result.returncode, 0)
        self.assertIn("shp run -o out -- python3 app.py", result.stdout)

    def test_the_users_preloads_stay(self):
        show = self.shp_run("sh", "-c", "echo $LD_PRELOAD", env=dict(
            clean_environment(), LD_PRELOAD="libm.so.6 libdl.so.2"))
        value = show.stdout.strip().split(":")
        self.assertEqual(value[-2:], ["libm.so.6", "libdl.so.2"])
        self.assertTrue(value[-3].endswith("libshp.so"), value)


class Recording(RunCase):
    def test_says_what_was_recorded_and_what_to_do_next(self):
        program = self.script(SPANS)
        result = self.shp_run(sys.executable, program, "1234")
        self.assert_ok(result)
        [file] = host_files(self.out)
        self.assertEqual(file.count("work"), 1234)
        self.assertTrue(file.metadata["complete"])
        self.assertIn("1,234 spans in 1 file", result.stderr)
        self.assertIn("nothing lost", result.stderr)
        self.assertIn(f"shp export {file.path}", result.stderr)
        self.assertIn("shp merge-dir", result.stderr)

    def test_the_command_that_it_names_works(self):
        self.shp_run(sys.executable, self.script(SPANS), "10")
        result = self.shp_run(sys.executable, self.script(SPANS), "10")
        [line] = [l for l in result.stderr.splitlines() if "next:" in l]
        command = line.split("next: ")[1].replace("shp ", f"{SHP} ", 1)
        exported = run(["sh", "-c", command], cwd=self.folder,
                       env=clean_environment())
        self.assert_ok(exported)

    def test_records_what_a_killed_program_ended(self):
        program = self.script(SPANS + "os.kill(os.getpid(), 9)\n")
        result = self.shp_run(sys.executable, program, "500")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        [file] = host_files(self.out)
        self.assertEqual(file.count("work"), 500)
        self.assertEqual(file.metadata["end_reason"], "killed")
        self.assertIn("500 spans", result.stderr)
        self.assertIn("killed", result.stderr)

    def test_has_every_process_of_the_tree(self):
        child = self.script(SPANS, "child.py")
        parent = self.script(SPANS + f"""
import subprocess
for i in range(3):
    subprocess.run([sys.executable, {str(child)!r}, "7"], check=True)
""", "parent.py")
        result = self.shp_run(sys.executable, parent, "5")
        self.assert_ok(result)
        counts = sorted(f.count("work") for f in host_files(self.out))
        self.assertEqual(counts, [5, 7, 7, 7])
        self.assertIn("26 spans in 4 files", result.stderr)

    def test_says_that_a_grandchild_goes_on_and_keeps_its_spans(self):
        child = self.script(SPANS + """
open(sys.argv[2], "w").write(str(os.getpid()))
while os.path.exists(sys.argv[2]):
    time.sleep(0.05)
shp.span_end(shp.span_start("late"))
""", "child.py")
        mark = self.folder / "mark"
        parent = self.script(f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, {str(child)!r}, "3", {str(mark)!r}],
                 start_new_session=True, stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL)
while not os.path.exists({str(mark)!r}):
    time.sleep(0.01)
""", "parent.py")
        result = self.shp_run(sys.executable, parent)
        self.assert_ok(result)
        pid = mark.read_text()
        mark.unlink()
        self.assertIn(f"still running and recording: pid {pid}", result.stderr)
        wait_for(lambda: closed_paths(self.out), 20, "the late file")
        [file] = host_files(self.out)
        self.assertEqual(file.names(), ["work"] * 3 + ["late"])

    def test_says_why_a_static_program_recorded_nothing(self):
        source = self.script("int main(void) { return 0; }", "empty.c")
        program = self.folder / "static-program"
        built = run(["gcc", "-static", source, "-o", program])
        if built.returncode:
            self.skipTest("no static libc here")
        result = self.shp_run(program)
        self.assert_ok(result)
        self.assertIn("nothing was recorded", result.stderr)
        self.assertIn("statically linked", result.stderr)

    def test_says_that_no_span_was_started(self):
        result = self.shp_run("true")
        self.assertIn("no process started a span", result.stderr)

    def test_leaves_no_daemon_and_no_socket(self):
        self.shp_run(sys.executable, self.script(SPANS), "1")
        left = [p for p in self.folder.rglob("*") if p.is_socket()]
        self.assertEqual(left, [])

    def test_uses_the_daemon_that_runs(self):
        daemon = self.daemon()
        result = self.shp_run(sys.executable, self.script(SPANS), "9",
                              options=("--socket", daemon.socket))
        self.assert_ok(result)
        self.assertIn("9 spans in 1 file", result.stderr)
        self.assertTrue(daemon.answers())


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

    def test_stop_and_continue_are_passed_on(self):
        process = self.start(sys.executable, self.script(SLEEPER), "SIGTERM")
        process.stdout.readline()
        [child] = children(process.pid, "python")
        process.send_signal(signal.SIGTSTP)
        wait_for(lambda: state(child) == "T", 10, "the program to stop")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: state(child) in "SR", 10, "the program to go on")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30 * SLOW)
        self.assertEqual(out, "got SIGTERM\n")


def stat_fields(pid):
    with open(f"/proc/{pid}/stat") as stream:
        text = stream.read()
    name = text[text.index("(") + 1:text.rindex(")")]
    return name, text[text.rindex(")") + 2:].split()


def state(pid):
    return stat_fields(pid)[1][0]


def children(parent, name):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                comm, fields = stat_fields(entry)
            except OSError:
                continue
            if int(fields[1]) == parent and comm.startswith(name):
                found.append(int(entry))
    return found


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
