"""What the tests of `shp run` share: programs to run, and a look at processes.
"""

import os
import signal
import subprocess

from shp_testing import Case, SHP, clean_environment, run

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
        how.setdefault("start_new_session", True)
        process = subprocess.Popen(
            [str(SHP), "run", "-o", str(self.out), "--",
             *[str(c) for c in command]],
            env=clean_environment(XDG_RUNTIME_DIR=self.folder),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **how)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


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
