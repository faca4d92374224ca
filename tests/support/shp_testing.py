"""What the integration and stress tests share: the parts as they were built, a
daemon of the test's own, host files read by Python's json, bounded waiting.

Plain standard library, CPython 3.8 and newer. Environment:
  SHP_BUILD        the build tree (default: build/ of this checkout)
  SHP_TEST_PYTHON  a Python that has Torch (default: python3, then build/venv)
  SHP_PREDECESSOR  folder of the predecessor's package (default: where a
                   checkout has it beside itself)
"""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SHP_BUILD", SOURCE / "build")).resolve()
LIBRARY = BUILD / "preload" / "libshp.so"
SHPD = BUILD / "daemon" / "shpd"
SHP = BUILD / "cli" / "shp"

SPAN_KEYS = ["type", "id", "pid", "tid", "name", "start_ns", "duration_ns",
             "args"]
METADATA_KEYS = ["type", "schema_version", "session_id", "pid", "hostname",
                 "clock", "start_monotonic_ns", "start_realtime_ns",
                 "clock_uncertainty_ns", "written_spans", "dropped_spans",
                 "stop_monotonic_ns", "stop_realtime_ns", "complete"]


@functools.lru_cache(maxsize=None)
def sanitizers():
    """The sanitizers of this build: "", "address,undefined", "thread"."""
    try:
        options = json.loads(
            (BUILD / "meson-info" / "intro-buildoptions.json").read_text())
    except OSError:
        return ""
    value = next(o["value"] for o in options if o["name"] == "b_sanitize")
    text = value if isinstance(value, str) else ",".join(value)
    return "" if text == "none" else text


# Everything takes longer with sanitizers, and on a loaded machine.
SLOW = 4 if sanitizers() else 1


@functools.lru_cache(maxsize=None)
def sanitizer_runtimes():
    """What must come first in LD_PRELOAD, as a list of paths."""
    found = []
    for word, name in (("address", "libasan.so"), ("thread", "libtsan.so")):
        if word in sanitizers():
            path = subprocess.run(["gcc", f"-print-file-name={name}"],
                                  capture_output=True, text=True, check=True)
            found.append(os.path.realpath(path.stdout.strip()))
    return found


def preload_value():
    return ":".join([*sanitizer_runtimes(), str(LIBRARY)])


def clean_environment(**extra):
    """os.environ without anything of ours, with what the sanitizers need."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("SHP_") and k not in
                   ("LD_PRELOAD", "HOST_SERVICE_PROFILER_ENABLE",
                    "PYTHONPATH")}
    if sanitizers():
        # The traced programs leak by themselves; we may not.
        environment["ASAN_OPTIONS"] = (
            "detect_leaks=0:detect_odr_violation=0:"
            "allocator_may_return_null=1:abort_on_error=0:"
            "handle_segv=0")
        environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
        if sanitizer_runtimes():
            environment["LD_PRELOAD"] = ":".join(sanitizer_runtimes())
    environment.update({k: str(v) for k, v in extra.items()})
    return environment


def traced_environment(daemon=None, **extra):
    """For a program that is preloaded by hand."""
    environment = clean_environment(LD_PRELOAD=preload_value())
    if daemon is not None:
        environment["SHP_SOCKET"] = str(daemon.socket)
    environment.update({k: str(v) for k, v in extra.items()})
    return environment


def wait_for(condition, seconds=10, what="a condition"):
    """The first true value of condition(), or an AssertionError."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds * SLOW} s for {what}")
        time.sleep(0.01)


def kill_group(process):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def run(command, *, env=None, seconds=60, cwd=None, stdin=subprocess.DEVNULL):
    """Runs a command to its end in a process group of its own, bounded in time.

    Returns a CompletedProcess with text. What hangs is killed with all that it
    started, and is a failure."""
    process = subprocess.Popen([str(part) for part in command], env=env,
                               cwd=cwd, stdin=stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=seconds * SLOW)
    except subprocess.TimeoutExpired:
        kill_group(process)
        out, err = process.communicate()
        raise AssertionError(f"{command} did not end in {seconds * SLOW} s\n"
                             f"{out}\n{err}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class HostFile:
    """One closed host file, read and checked with Python's json alone."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        with open(path, "rb") as stream:
            raw = stream.read()
        assert raw.endswith(b"\n"), f"{path}: the last line is cut"
        lines = [json.loads(line) for line in raw.decode("utf-8").splitlines()]
        self.metadata = lines[0]
        self.spans = [row for row in lines if row["type"] == "span"]
        self.open_spans = [r for r in lines if r["type"] == "open_span"]
        self.clocks = [r for r in lines if r["type"] == "clock"]
        self.check()

    def check(self):
        meta = self.metadata
        assert list(meta)[:len(METADATA_KEYS)] == METADATA_KEYS, list(meta)
        assert meta["type"] == "metadata" and meta["schema_version"] == 3
        assert meta["clock"] == "monotonic"
        assert meta["written_spans"] == len(self.spans), (
            meta["written_spans"], len(self.spans))
        assert meta["dropped_spans"] == sum(meta["dropped"].values()), meta
        for number, span in enumerate(self.spans, 1):
            assert list(span) == SPAN_KEYS, span
            assert span["id"] == number and span["pid"] == meta["pid"], span
            assert span["duration_ns"] >= 0 and span["name"], span
            assert meta["start_monotonic_ns"] <= span["start_ns"], span
            assert (span["start_ns"] + span["duration_ns"]
                    <= meta["stop_monotonic_ns"]), span

    def names(self):
        return [span["name"] for span in self.spans]

    def count(self, name):
        return self.names().count(name)

    def tids(self):
        return {span["tid"] for span in self.spans}


def closed_paths(directory):
    return sorted(pathlib.Path(directory).rglob("*.jsonl"))


def pending_paths(directory):
    return sorted(pathlib.Path(directory).rglob("*.jsonl.pending"))


def host_files(directory):
    return [HostFile(path) for path in closed_paths(directory)]


def published(directory, count=1, seconds=20):
    """The host files, as soon as there are `count` and none is pending."""
    def ready():
        return (len(closed_paths(directory)) >= count
                and not pending_paths(directory))
    wait_for(ready, seconds, f"{count} host files in {directory}")
    return host_files(directory)


class Daemon:
    """A shpd of this test, in the folder of its socket."""

    def __init__(self, folder, *options):
        self.socket = pathlib.Path(folder) / "shpd.sock"
        self.log = pathlib.Path(folder) / "shpd.log"
        self.options = options
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(SHPD), "--socket", str(self.socket), *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment(), start_new_session=True)
        wait_for(self.answers, 20, "shpd to listen")
        return self

    def environment(self):
        return clean_environment()

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"shpd ended: {self.log.read_text()}")
        return self.socket.exists() and run(
            [SHP, "status", "--json", "--socket", self.socket],
            env=clean_environment()).returncode == 0

    def status(self):
        answer = run([SHP, "status", "--json", "--socket", self.socket],
                     env=clean_environment())
        return json.loads(answer.stdout)

    def stop(self, expect=0):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                status = self.process.wait(20 * SLOW)
            except subprocess.TimeoutExpired:
                kill_group(self.process)
                raise AssertionError("shpd does not end on SIGTERM") from None
            assert status == expect, (status, self.log.read_text())

    def kill(self):
        """All of it, with what would start it again."""
        kill_group(self.process)
        self.process.wait()

    def worker(self):
        """The pid of the process that does the work."""
        return self.status()["worker_pid"]

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind is not None:
            kill_group(self.process)
            self.process.wait()
            sys.stderr.write(self.log.read_text()[-4000:])
            return
        self.stop()


class Case(unittest.TestCase):
    """A test with a folder of its own, removed when it went well."""

    needs = (LIBRARY, SHPD, SHP)

    @classmethod
    def setUpClass(cls):
        absent = [str(p.relative_to(BUILD)) for p in cls.needs
                  if not p.exists()]
        if absent:
            raise unittest.SkipTest("not built here: " + ", ".join(absent))

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shp-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = self.folder / "out"

    def daemon(self, *options):
        daemon = Daemon(self.folder, *options)
        context = contextlib.ExitStack()
        context.enter_context(daemon)
        self.addCleanup(context.close)
        return daemon

    def script(self, text, name="program.py"):
        path = self.folder / name
        path.write_text(text)
        return path

    def assert_ok(self, result):
        self.assertEqual(result.returncode, 0,
                         f"{result.args}\n{result.stdout}\n{result.stderr}")


def has_torch(python):
    return subprocess.run([python, "-c", "import torch.profiler"],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          env=clean_environment(LD_PRELOAD="")).returncode == 0


@functools.lru_cache(maxsize=None)
def torch_python():
    """A Python that has Torch; skips the test where there is none."""
    if sanitizers():
        raise unittest.SkipTest("Torch does not run under the sanitizers")
    for candidate in (os.environ.get("SHP_TEST_PYTHON"), "python3",
                      str(SOURCE / "build" / "venv" / "bin" / "python")):
        if candidate and shutil.which(candidate) and has_torch(candidate):
            return candidate
    raise unittest.SkipTest("no Python with Torch (set SHP_TEST_PYTHON)")


def predecessor():
    """The folder with the predecessor's package; skips where it is not."""
    folder = pathlib.Path(os.environ.get(
        "SHP_PREDECESSOR", SOURCE.parent / "shared" / "predecessor"))
    if not (folder / "service_host_profiling" / "__init__.py").exists():
        raise unittest.SkipTest("the predecessor's package is not here "
                                "(set SHP_PREDECESSOR)")
    return folder


def compile_program(source, output, *flags, cxx=False):
    """Builds one C or C++ source that includes preload/shp.h."""
    compiler = ["g++", "-std=c++17"] if cxx else ["gcc", "-std=c11"]
    result = run([*compiler, "-O2", "-Wall", "-Wextra", "-Werror",
                  f"-I{SOURCE}", f"-I{SOURCE / 'preload'}", source, "-o",
                  output, *flags])
    if result.returncode:
        raise AssertionError(result.stderr)
    return output


def main():
    # A shell ignores these for what it runs in the background; programs that
    # the tests start should find them as in the foreground.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    unittest.main(verbosity=1)
