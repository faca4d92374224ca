"""`shp status`: who records now, and one clear line where nobody listens."""

import json
import os
import subprocess
import sys

from shp_testing import (Case, SHP, clean_environment, main, run,
                         traced_environment)

PROGRAM = """
import os, sys
import service_host_profiling as shp
for i in range(10):
    shp.span_end(shp.span_start("work"))
print("ready", flush=True)
sys.stdin.read()
"""


class Status(Case):
    def status(self, *options):
        return run([SHP, "status", *options], env=clean_environment())

    def test_without_a_daemon_is_one_line_and_1(self):
        result = self.status("--socket", self.folder / "none.sock")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, "shp status: no daemon answers at "
                         f"{self.folder}/none.sock\n")

    def test_of_what_is_no_daemon_is_one_line_and_1(self):
        path = self.script("text", "file.sock")
        result = self.status("--socket", path)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn(str(path), result.stderr)

    def test_finds_the_daemon_by_the_environment(self):
        daemon = self.daemon()
        result = run([SHP, "status"],
                     env=clean_environment(SHP_SOCKET=daemon.socket))
        self.assert_ok(result)
        self.assertIn(f"pid {daemon.process.pid} at {daemon.socket}: "
                      "0 sessions", result.stdout)

    def test_shows_a_session_while_it_records_and_not_after(self):
        daemon = self.daemon()
        process = subprocess.Popen(
            [sys.executable, str(self.script(PROGRAM))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=traced_environment(daemon, SHP_OUTPUT_DIR=self.out))
        self.assertEqual(process.stdout.readline(), "ready\n")
        try:
            answer = json.loads(
                self.status("--json", "--socket", daemon.socket).stdout)
            table = self.status("--socket", daemon.socket).stdout
        finally:
            process.communicate("")
        self.assertEqual(answer["pid"], daemon.process.pid)
        [session] = answer["sessions"]
        self.assertEqual(session["pid"], process.pid)
        self.assertEqual(session["directory"], os.path.realpath(self.out))
        self.assertIn("1 session\n", table)
        [row] = [r for r in table.splitlines() if str(self.out) in r]
        self.assertEqual(row.split()[0], str(process.pid))
        self.assertTrue(row.endswith(session["file"]))
        self.assertEqual(process.returncode, 0)

    def test_help_shows_an_example(self):
        result = self.status("--help")
        self.assert_ok(result)
        self.assertIn("shp status --json", result.stdout)


if __name__ == "__main__":
    main()
