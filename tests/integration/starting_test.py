"""How a Python program comes to a daemon, or goes without one."""

import os
import signal
import sys

from shp_testing import (Case, Daemon, main, published, run,
                         traced_environment, wait_for)

PRELUDE = """
import service_host_profiling as shp
def spans(name, count):
    for _ in range(count):
        shp.span_end(shp.span_start(name))
"""


class Starting(Case):
    def test_the_library_starts_a_daemon_where_none_runs(self):
        program = self.script(PRELUDE + "spans('work', 5)\n")
        os.chmod(self.folder, 0o700)
        socket = self.folder / "own.sock"
        environment = traced_environment(SHP_OUTPUT_DIR=self.out,
                                         SHP_SOCKET=socket)
        self.addCleanup(self.end_daemon, socket)
        self.assert_ok(run([sys.executable, program], env=environment))
        [file] = published(self.out)
        self.assertEqual(file.names(), ["work"] * 5)

    @staticmethod
    def end_daemon(socket):
        daemon = Daemon(socket.parent)
        daemon.socket = socket
        if socket.exists():
            os.kill(daemon.status()["pid"], signal.SIGTERM)
            wait_for(lambda: not socket.exists(), 20, "the daemon to end")

    def test_without_a_daemon_start_says_so_in_one_line(self):
        program = self.script(PRELUDE + f"""
try:
    shp.start({str(self.out)!r})
except RuntimeError as problem:
    print(problem)
spans("lost", 3)
""")
        result = run([sys.executable, program], env=traced_environment(
            SHP_SOCKET=self.folder / "none.sock", SHP_NO_SPAWN=1))
        self.assert_ok(result)
        self.assertIn("no shpd answers", result.stdout)
        self.assertEqual(len(result.stdout.splitlines()), 1)
        self.assertEqual(result.stderr, "")

    def test_without_a_daemon_an_environment_session_stays_silent(self):
        program = self.script(PRELUDE + "spans('lost', 3)\nprint('done')\n")
        result = run([sys.executable, program], env=traced_environment(
            SHP_SOCKET=self.folder / "none.sock", SHP_NO_SPAWN=1,
            SHP_OUTPUT_DIR=self.out))
        self.assert_ok(result)
        self.assertEqual((result.stdout, result.stderr), ("done\n", ""))

    def test_start_and_stop_publish_while_the_program_goes_on(self):
        daemon = self.daemon()
        program = self.script(PRELUDE + f"""
import json
for n in (10, 20):
    path = shp.start({str(self.out)!r})
    assert not path.exists()
    spans("work", n)
    assert shp.stop() == path
    rows = [json.loads(line) for line in open(path)]
    assert rows[0]["written_spans"] == n, rows[0]
    spans("between", 5)
print("done")
""")
        result = run([sys.executable, program], env=traced_environment(daemon))
        self.assert_ok(result)
        counts = sorted(len(f.spans) for f in published(self.out, 2))
        self.assertEqual(counts, [10, 20])


if __name__ == "__main__":
    main()
