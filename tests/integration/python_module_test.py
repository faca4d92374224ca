"""The Python module inside libshp.so: that it neither leaks nor crashes under
threads, re-entrancy, signals and interpreters that end."""

import os

from python_case import PythonCase
from shp_pythons import pythons
from shp_testing import (HostFile, LIBRARY, clean_environment, main, published,
                         run, traced_environment)


LEAKS = r"""
import gc, os, resource, sys
import service_host_profiling as shp
shp.start(sys.argv[1])
name, attrs = "n" * 20, {"a": 1, "b": [1, 2.5, "x"], "c": {"d": None}}
@shp.profile(name, attrs)
def profiled(): pass
class Token: pass
token = Token()
def raising(): raise ValueError("no")
raising = shp.profile("r")(raising)
def round_of(count):
    for i in range(count):
        shp.span_end(shp.span_start(name))
        shp.span_end(shp.span_start(name, attrs))
        shp.span_end(shp.span_start("dynamic %d" % (i % 1000), {"i": i}))
        shp.span_end(shp.span_start(name, attrs={"bad": token}))
        with shp.span(name, attrs): pass
        profiled()
        try: raising()
        except ValueError: pass
        for wrong in ((), (1, 2, 3)):
            try: shp.span_start(*wrong)
            except TypeError: pass
        try: shp.span_end("x")
        except TypeError: pass
        shp.span_start("")
        sid = shp.span_start(name)
        shp.span_end(sid); shp.span_end(sid)
def counts():
    gc.collect()
    return [sys.getrefcount(x) for x in
            (name, attrs, token, profiled, raising, shp.span_start, None)]
def blocks():
    gc.collect()
    return sys.getallocatedblocks()
round_of(10000)
before, blocks_before = counts(), blocks()
round_of(30000)
after, blocks_after = counts(), blocks()
assert all(b - a < 300 for a, b in zip(before, after)), (before, after)
assert blocks_after - blocks_before < 600, (blocks_before, blocks_after)
import warnings
warnings.simplefilter("ignore")
shp.stop()
# Sessions and deferred attributes give everything back too.
def session():
    shp.start(sys.argv[1])
    for i in range(50):
        shp.span_end(shp.span_start(name, lambda: {"t": 1}))
        shp.span_end(shp.span_start(name, {"t": lambda: 2, "u": attrs}))
        shp.span_start("left open", attrs)
    os.unlink(shp.stop())
for _ in range(5): session()
before, blocks_before = counts(), blocks()
for _ in range(30): session()
after, blocks_after = counts(), blocks()
assert all(b - a < 300 for a, b in zip(before, after)), (before, after)
assert blocks_after - blocks_before < 600, (blocks_before, blocks_after)
print("fine")
"""


class Memory(PythonCase):
    def test_no_object_leaks(self):
        for _, _, result in self.each(LEAKS, seconds=240):
            self.assertEqual(result.stdout, "fine\n")

    def test_cycles_through_spans_and_profiled_functions_are_collected(self):
        text = r"""
import gc, sys, weakref
import service_host_profiling as shp
class Token: pass
def make():
    token = Token()
    attrs = {"token": token}
    span = shp.span("s", attrs)
    attrs["span"] = span
    def f(): return token
    token.f = shp.profile("f", attrs)(f)
    token.span = span
    return weakref.ref(token), weakref.ref(token.f)
refs = make()
gc.collect()
assert [r() for r in refs] == [None, None], refs
print("fine")
"""
        for _, _, result in self.each(text):
            self.assertEqual(result.stdout, "fine\n")

    def test_ids_that_are_kept_stay_what_they_were(self):
        text = r"""
import sys
import service_host_profiling as shp
shp.start(sys.argv[1])
kept, copies = [], []
for i in range(1000):
    span_id = shp.span_start("x")
    if i % 3 == 0:
        kept.append(span_id); copies.append(int(str(span_id)))
    shp.span_end(span_id)
assert kept == copies
assert len(set(kept)) == len(kept)
numbers = {shp.span_start("open"): i for i in range(300)}
assert len(numbers) == 300
for span_id in numbers: shp.span_end(span_id)
assert shp.span_start("y") + 0 not in numbers
shp.stop()
print("fine")
"""
        for _, _, result in self.each(text):
            self.assertEqual(result.stdout, "fine\n")


class Threads(PythonCase):
    def test_sessions_come_and_go_while_threads_record(self):
        text = r"""
import os, sys, threading, time, warnings
import service_host_profiling as shp
warnings.simplefilter("error")
go, counts = True, []
def work(number):
    n = 0
    @shp.profile("profiled", {"w": number})
    def f(): pass
    while go:
        a = shp.span_start("a")
        b = shp.span_start("b", {"n": n, "w": number})
        c = shp.span_start("c", lambda: {"deferred": number})
        shp.span_end(a); shp.span_end(b); shp.span_end(c)
        with shp.span("d", {"x": [n]}): f()
        n += 1
    counts.append(n)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads: t.start()
paths = []
for _ in range(8):
    shp.start(sys.argv[1])
    time.sleep(0.01)
    paths.append(shp.stop())
go = False
for t in threads: t.join()
assert len(counts) == 4
print(*paths, sep="\n")
"""
        for _, _, result in self.each(text):
            paths = result.stdout.split()
            self.assertEqual(len(paths), 8)
            for path in paths:
                file = HostFile(path)
                self.assertEqual(file.metadata["bad_args"], 0)
                for span in file.spans:
                    self.assertEqual(sorted(span["args"]), {
                        "a": [], "b": ["n", "w"], "c": ["deferred"],
                        "d": ["x"], "profiled": ["w"]}[span["name"]])

    def test_starts_and_stops_from_many_threads_are_one_after_the_other(self):
        text = r"""
import sys, threading
import service_host_profiling as shp
started, refused, stopped, idle = [], [], [], []
def work():
    for _ in range(15):
        try: started.append(shp.start(sys.argv[1]))
        except RuntimeError as e:
            assert "already active" in str(e), e
            refused.append(1)
        shp.span_end(shp.span_start("x"))
        try: stopped.append(shp.stop())
        except RuntimeError as e:
            assert "not active" in str(e), e
            idle.append(1)
threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
try: stopped.append(shp.stop())
except RuntimeError: pass
assert sorted(started) == sorted(stopped)
assert all(p.exists() for p in started)
assert len(started) + len(refused) == 90
print("fine")
"""
        for _, _, result in self.each(text):
            self.assertEqual(result.stdout, "fine\n")

    def test_other_threads_run_while_stop_waits(self):
        text = r"""
import sys, threading, time
import service_host_profiling as shp
shp.start(sys.argv[1])
for i in range(300000): shp.span_end(shp.span_start("x"))
gaps, go = [], True
def watch():
    last = time.monotonic()
    while go:
        time.sleep(0.001)
        now = time.monotonic()
        gaps.append(now - last); last = now
thread = threading.Thread(target=watch); thread.start()
shp.span_end(shp.span_start("slow", lambda: time.sleep(0.3) or {"a": 1}))
begin = time.monotonic(); shp.stop(); took = time.monotonic() - begin
go = False; thread.join()
assert took >= 0.3
print("fine" if sum(gaps) > 0.25 and len(gaps) > 30 else (took, len(gaps)))
"""
        for _, _, result in self.each(text):
            self.assertEqual(result.stdout, "fine\n")


class Reentrancy(PythonCase):
    def test_objects_that_call_back_while_they_are_encoded_or_die(self):
        text = r"""
import sys, warnings
import service_host_profiling as shp
calls = []
class Dies:
    def __del__(self):
        calls.append("del")
        with shp.span("in del", {"a": [1]}): pass
class Asks(dict):
    def items(self):
        calls.append("items")
        shp.span_end(shp.span_start("in items", Plain(q=1)))
        outer.clear()
        victims.clear()
        return [("k", "v"), ("l", [1, 2, 3])]
class Plain(dict): pass
victims = [Asks(), "x", {"y": object}]
outer = {"first": Asks(), "second": victims, "third": 3}
shp.start(sys.argv[1])
shp.span_end(shp.span_start("outer", {"o": outer, "v": victims}))
shp.span_end(shp.span_start("dies", {"d": 1, 2: Dies}))     # a callable class
attrs = {"d": Dies()}
span_id = shp.span_start("held", attrs)
del attrs
shp.span_end(span_id)                                          # bad args
left = shp.span_start("never ended", {"d": Dies()})
big = {"n%d" % i: Asks() for i in range(50)}
shp.span_end(shp.span_start("grows", big))
def stops():
    try: shp.stop()
    except RuntimeError as e: return {"e": str(e)}
def starts():
    try: shp.start(sys.argv[1])
    except RuntimeError as e: return {"e": str(e)}
shp.span_end(shp.span_start("stops", stops))
shp.span_end(shp.span_start("starts", starts))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(shp.stop())
assert calls.count("del") >= 3, calls
"""
        for _, _, result in self.each(text):
            file = HostFile(result.stdout.strip())
            args = {span["name"]: span["args"] for span in file.spans}
            self.assertEqual(args["stops"],
                             {"e": "Host collection is not active"})
            self.assertEqual(args["starts"], {
                "e": "Host collection is already active in this process"})
            self.assertEqual(args["held"], {})
            self.assertIn("in del", args)
            self.assertIn("in items", args)

    def test_signal_handlers_in_python_may_record(self):
        text = r"""
import signal, sys, time
import service_host_profiling as shp
seen = []
def handler(*_):
    seen.append(1)  # in one step: handlers interrupt each other
    with shp.span("handler", {"n": len(seen)}): pass
signal.signal(signal.SIGALRM, handler)
shp.start(sys.argv[1])
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
end = time.monotonic() + 0.5
n = 0
while time.monotonic() < end:
    shp.span_end(shp.span_start("loop", {"n": n, "text": "x" * 50})); n += 1
signal.setitimer(signal.ITIMER_REAL, 0)
path = shp.stop()
print(n, len(seen), path)
"""
        for _, _, result in self.each(text):
            loops, handled, path = result.stdout.split()
            file = HostFile(path)
            self.assertEqual(file.count("loop"), int(loops))
            self.assertEqual(file.count("handler"), int(handled))

    def test_spans_may_end_after_the_interpreter_began_to_end(self):
        text = r"""
import atexit, sys, threading, time
import service_host_profiling as shp
shp.start(sys.argv[1])
class Late:
    def __init__(self): self.id = shp.span_start("late", {"a": 1})
    def __del__(self, end=shp.span_end, start=shp.span_start):
        end(self.id); end(start("in __del__", {"b": 2}))
late = Late()
cycle = [Late()]; cycle.append(cycle)
atexit.register(lambda: shp.span_end(shp.span_start("atexit")))
def daemon():
    while True: shp.span_end(shp.span_start("daemon", {"c": 3}))
threading.Thread(target=daemon, daemon=True).start()
time.sleep(0.05)
"""
        for _, out, result in self.each(text):
            self.assertEqual(result.stderr, "")
            file = published(out)[0]
            self.assertEqual(file.count("atexit"), 1)
            self.assertGreater(file.count("daemon"), 0)


class Environment(PythonCase):
    def test_a_process_records_by_its_environment_alone(self):
        text = r"""
import service_host_profiling as shp, sys
assert shp.span_start.__name__ == "span_start"
for i in range(10): shp.span_end(shp.span_start("x", {"i": i}))
shp.span_end(shp.span_start("deferred", lambda: {"asked": True}))
@shp.profile("p")
def f(): return shp.span_start("open")
f()
try: shp.stop()
except RuntimeError as e: print(e)
"""
        for version, _, result in self.each(
                text, SHP_OUTPUT_DIR=self.folder / "by-itself"):
            self.assertEqual(result.stdout, "Host collection is not active\n")
        for file in published(self.folder / "by-itself", len(pythons())):
            self.assertEqual(file.count("x"), 10)
            self.assertEqual(file.count("p"), 1)
            self.assertEqual([s["args"]["i"] for s in file.spans
                              if s["name"] == "x"], list(range(10)))
            self.assertEqual(file.metadata["end_reason"], "exit")
            [deferred] = [s for s in file.spans if s["name"] == "deferred"]
            self.assertEqual(deferred["args"], {"asked": True})

    def test_a_program_that_is_no_python_is_left_alone(self):
        result = run(["/bin/sh", "-c", "env | sort; exit 3"],
                     env=traced_environment())
        plain = run(["/bin/sh", "-c", "env | sort; exit 3"],
                    env=clean_environment(LD_PRELOAD=""))
        without = [line for line in result.stdout.splitlines()
                   if not line.startswith("LD_PRELOAD=")]
        self.assertEqual(result.returncode, 3)
        self.assertEqual(without, [line for line in plain.stdout.splitlines()
                                   if not line.startswith("LD_PRELOAD=")])

    def test_the_library_asks_nobody_for_python(self):
        result = run(["nm", "-D", "--undefined-only", LIBRARY])
        self.assert_ok(result)
        self.assertNotIn("Py", result.stdout)
        needed = run(["readelf", "-d", LIBRARY]).stdout
        self.assertNotIn("libpython", needed)

    def test_too_old_an_interpreter_goes_without(self):
        root = os.path.expanduser("~/.pyenv/versions")
        found = False
        for name in sorted(os.listdir(root)) if os.path.isdir(root) else []:
            python = os.path.join(root, name, "bin", "python")
            if name.startswith(("3.6.", "3.7.", "2.7.")):
                found = True
                result = run([python, "-c", "print(5)\n"
                              "import service_host_profiling"],
                             env=traced_environment())
                self.assertEqual(result.stdout, "5\n")
                self.assertIn("ImportError" if name.startswith("2")
                              else "ModuleNotFoundError", result.stderr)
        if not found:
            self.skipTest("no CPython before 3.8 here")


if __name__ == "__main__":
    main()
