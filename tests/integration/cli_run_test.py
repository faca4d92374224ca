"""`shp run` in front of ordinary programs: its status, arguments and files."""

import signal
import sys
import unittest

from shp_run_case import RunCase, SPANS
from shp_testing import (SHP, clean_environment, closed_paths, host_files,
                         main, run, sanitizers, wait_for)


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

    @unittest.skipIf(sanitizers(), "their runtime has to come first")
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


if __name__ == "__main__":
    main()
