"""What a function that is recorded by name (SHP_TRACE) costs more than one that
is not, and what the others cost more for it.

    functions_bench.py [--small] [--check] [PYTHON]     default: CPython 3.12

Each round runs the same loops in one process with SHP_TRACE and in one without,
in turns; medians of rounds, processor time of the thread. --check exits with 1
when a recorded call costs more than 80 ns, or 2.5 times what two callbacks of
sys.monitoring that do nothing add (on a machine that is slow or busy).
"""

import json
import pathlib
import statistics
import sys
import tempfile

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
sys.path.insert(0, str(SUPPORT))
from no_op_module import compile_no_op  # noqa: E402
from shp_pythons import pythons  # noqa: E402
from shp_testing import Daemon, run, traced_environment  # noqa: E402

TARGET = """
def named(): pass
def other(): pass
def raises(): raise ValueError
def monitored(): pass
"""

CHILD = r"""
import json, sys, time
import target
count = int(sys.argv[1])

def loop(body):
    names = {"t": target}
    exec("def loop(n):\n for i in range(n // 10):\n" + ("  %s\n" % body) * 10,
         names)
    return names["loop"]

def per_call(function, scale=1):
    n = count // scale
    function(n // 10)
    begin = time.thread_time_ns()
    function(n)
    return (time.thread_time_ns() - begin) / n

caught = "try: t.raises()\n  except ValueError: pass"
found = {name: per_call(loop(body), scale) for name, body, scale in (
    ("named", "t.named()", 1), ("other", "t.other()", 1),
    ("raising", caught, 10))}
m = sys.monitoring
sys.path.insert(0, sys.argv[3])
from no_op_module import load_no_op
nothing = load_no_op(sys.argv[2]).start
m.use_tool_id(1, "nothing")
for event in (m.events.PY_START, m.events.PY_RETURN):
    m.register_callback(1, event, nothing)
m.set_local_events(1, target.monitored.__code__,
                   m.events.PY_START | m.events.PY_RETURN)
found["two callbacks"] = per_call(loop("t.monitored()")) - found["other"]
json.dump(found, sys.stdout)
"""


def measure(python, rounds, count):
    times = {}
    with tempfile.TemporaryDirectory(prefix="shp-bench-") as folder:
        folder = pathlib.Path(folder)
        (folder / "target.py").write_text(TARGET)
        (folder / "child.py").write_text(CHILD)
        (folder / "list.txt").write_text("target:named\n")
        no_op = compile_no_op(python, folder)
        if no_op is None:
            sys.exit(77)
        with Daemon(folder) as daemon:
            plain = traced_environment(daemon)
            traced = dict(plain, SHP_TRACE=str(folder / "list.txt"),
                          SHP_OUTPUT_DIR=str(folder / "out"))
            for _ in range(rounds):
                for way, environment in (("plain", plain), ("traced", traced)):
                    result = run([python, folder / "child.py", count, no_op,
                                  SUPPORT],
                                 env=environment, cwd=folder)
                    for name, ns in json.loads(result.stdout).items():
                        times.setdefault((way, name), []).append(ns)
                for path in (folder / "out").glob("*"):
                    path.unlink()
    return {key: statistics.median(values) for key, values in times.items()}


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    small = "--small" in sys.argv
    python = words[0] if words else pythons().get((3, 12))
    if python is None:
        print("no CPython 3.12 here")
        return 77
    ns = measure(python, 3 if small else 9, 100_000 if small else 1_000_000)
    added = ns["traced", "named"] - ns["plain", "named"]
    floor = ns["traced", "two callbacks"]
    rows = (("a recorded call, added", added),
            ("two callbacks that do nothing, added", floor),
            ("a call that is not named, plain", ns["plain", "other"]),
            ("the same while others are recorded", ns["traced", "other"]),
            ("a raising call that is not named, plain", ns["plain", "raising"]),
            ("the same while others are recorded", ns["traced", "raising"]))
    for what, value in rows:
        print(f"  {what:42} {value:8.1f} ns")
    missed = added > max(80, 2.5 * floor)
    return 1 if missed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
