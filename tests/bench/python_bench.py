"""What a span costs in Python, as ratios of what it replaces and of a call that
does nothing (no_op_module.c, compiled for the Python at hand), all in one process and
in turns.

    python_bench.py [--small] [--check] [PYTHON]     PYTHON: default CPython 3.11

Rows: a pair of span_start and span_end without attributes, with a dict of three
scalars (the cost at stop() included), `with span(...)`, a profiled call; stop()
after many spans; the same calls while nothing records. Medians of rounds that
alternate between the candidates: processor time of calls, elapsed time of stop().
--check exits with 1 when a target is missed.
"""

import json
import os
import statistics
import sys
import tempfile
import time

PAIR = "s = start('bench')\n  end(s)"
DICT = "s = start('bench', {'step': i, 'loss': 2.5, 'phase': 'decode'})\n  end(s)"
WITH = "with span('bench'):\n   pass"
CALL = "f()"


def loop(body, repeat=10):
    """loop(n) runs `body` n times, `repeat` of them a turn of the loop."""
    def make(**names):
        text = ("def loop(n):\n for i in range(n // %d):\n" % repeat
                + ("  %s\n" % body) * repeat)
        exec(text, names)
        return names["loop"]
    return make


def timed(function, *args, clock=time.thread_time_ns):
    """Nanoseconds of this thread's own work, whoever else is on the machine."""
    begin = clock()
    function(*args)
    return clock() - begin


def load_predecessor(folder):
    """The predecessor under another name, beside ours."""
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location(
        "predecessor", os.path.join(folder, "service_host_profiling",
                                    "__init__.py"),
        submodule_search_locations=[
            os.path.join(folder, "service_host_profiling")])
    module = sys.modules["predecessor"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nothing():
    pass


class Bench:
    def __init__(self, predecessor, no_op, rounds, count):
        import service_host_profiling as ours
        self.ours, self.theirs, self.no_op = ours, predecessor, no_op
        self.rounds, self.count = rounds, count
        self.folder = tempfile.mkdtemp(prefix="shp-bench-")
        self.times = {}

    def note(self, name, ns):
        self.times.setdefault(name, []).append(ns)

    def in_session(self, package, name, function, stop_counts=False):
        if package is None:
            return
        package.start(self.folder)
        function(2000)
        spent = timed(function, self.count)
        stop = timed(package.stop, clock=time.perf_counter_ns)
        self.note(name, (spent + (stop if stop_counts else 0)) / self.count)

    def round(self):
        ours, theirs = self.ours, self.theirs
        if self.no_op is not None:
            nop = loop(PAIR)(start=self.no_op.start, end=self.no_op.end)
            nop(2000)
            self.note("no-op pair", timed(nop, self.count) / self.count)
        off = loop(PAIR)(start=ours.span_start, end=ours.span_end)
        off(2000)
        self.note("pair, not recording", timed(off, self.count) / self.count)
        for package, who in ((theirs, "predecessor "), (ours, "")):
            if package is None:
                continue
            calls = {"start": package.span_start, "end": package.span_end}
            self.in_session(package, who + "pair", loop(PAIR)(**calls))
            self.in_session(package, who + "pair with a dict",
                            loop(DICT)(**calls), stop_counts=True)
            profiled = package.profile("bench")(nothing)
            self.in_session(package, who + "profiled call",
                            loop(CALL)(f=profiled))
        self.in_session(ours, "with span", loop(WITH)(span=ours.span))
        plain = loop(CALL)(f=nothing)
        self.note("plain call", timed(plain, self.count) / self.count)

    def stop(self, package, name, spans):
        if package is None:
            return
        package.start(self.folder)
        loop(PAIR)(start=package.span_start, end=package.span_end)(spans)
        self.note(name, timed(package.stop, clock=time.perf_counter_ns))

    def run(self, spans):
        for _ in range(self.rounds):
            self.round()
        for _ in range(3):
            self.stop(self.theirs, "predecessor stop", spans)
            self.stop(self.ours, "stop", spans)
        return {name: statistics.median(values)
                for name, values in self.times.items()}


def child(arguments):
    options = json.loads(arguments)
    predecessor = (load_predecessor(options["predecessor"])
                   if options["predecessor"] else None)
    no_op = None
    if options["no_op"]:
        sys.path.insert(0, options["support"])
        from no_op_module import load_no_op
        no_op = load_no_op(options["no_op"])
    bench = Bench(predecessor, no_op, options["rounds"], options["count"])
    try:
        json.dump(bench.run(options["spans"]), sys.stdout)
    finally:
        import shutil
        shutil.rmtree(bench.folder, ignore_errors=True)


# (what, its baseline, factor that it must stay under)
TARGETS = [
    ("pair", "predecessor pair", 1 / 8),
    ("pair", "no-op pair", 2.5),
    ("pair with a dict", "predecessor pair with a dict", 1 / 3),
    ("stop", "predecessor stop", 1 / 30),
    ("pair, not recording", "no-op pair", 1.5),
    ("profiled call", "predecessor profiled call", 1 / 4),
    ("with span", "predecessor pair", 1 / 2),
]


def report(times, spans):
    print(f"stop() after {spans:,} spans; the rest for one pair or call")
    for name, ns in times.items():
        print(f"  {name:32} {ns / 1e6:10.1f} ms" if name.endswith("stop")
              else f"  {name:32} {ns:10.1f} ns")
    missed = 0
    for what, baseline, limit in TARGETS:
        if baseline not in times:
            print(f"  {what} / {baseline}: the baseline is not here")
            continue
        ratio = times[what] / times[baseline]
        missed += ratio > limit
        print(f"  {what} / {baseline}: {ratio:.3f} (target {limit:.3f})"
              + ("  MISSED" if ratio > limit else ""))
    return missed


def main():
    import unittest
    import no_op_module
    from shp_pythons import pythons
    from shp_testing import (Daemon, predecessor, run,
                             traced_environment)
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    small = "--small" in sys.argv
    found = pythons()
    python = words[0] if words else found.get((3, 11)) or list(found.values())[0]
    try:
        package = str(predecessor())
    except unittest.SkipTest as reason:
        print(reason)
        package = None
    spans = 100000 if small else 1000000
    options = {"predecessor": package, "spans": spans,
               "support": os.path.dirname(no_op_module.__file__),
               "rounds": 3 if small else 15,
               "count": 20000 if small else 100000}
    with tempfile.TemporaryDirectory(prefix="shp-bench-") as folder:
        options["no_op"] = no_op_module.compile_no_op(python, folder)
        with Daemon(folder) as daemon:
            result = run([python, __file__, "--child", json.dumps(options)],
                         env=traced_environment(
                             daemon, HOST_SERVICE_PROFILER_ENABLE=1),
                         seconds=900)
    if result.returncode:
        sys.exit(result.stderr)
    print(python)
    missed = report(json.loads(result.stdout), spans)
    return 1 if missed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(child(sys.argv[2]) if sys.argv[1:2] == ["--child"] else main())
