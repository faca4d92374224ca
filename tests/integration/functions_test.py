"""Functions recorded by name (SHP_TRACE) on every CPython of this machine: which
become spans, what the program sees of it, and what is said of a bad list."""

import collections
import os

from shp_pythons import pythons
from shp_testing import (Case, SHP, clean_environment, main, published, run,
                         traced_environment)

TARGET = r"""
import functools, asyncio, contextlib
def plain(x, n=2): return x
def nested():
    def inner(): return 1
    return inner()
def gen(k):
    for i in range(k): yield i
async def co(n):
    await asyncio.sleep(0.001)
    return n
async def agen():
    yield 1
    await asyncio.sleep(0)
    yield 2
def bare(f):
    def wrapper(*a, **k): return f(*a, **k)
    return wrapper
def good(f):
    @functools.wraps(f)
    def wrapper(*a, **k): return f(*a, **k)
    return wrapper
@bare
def hidden(): return 1
@good
def decorated(): return 2
@functools.lru_cache(None)
def cached(x): return x
def raises(): raise ValueError("x")
def recursive(n): return 0 if n == 0 else 1 + recursive(n-1)
class Base:
    def inherited(self): return "i"
    def over(self): return "b"
class C(Base):
    queue = [1,2,3]
    def method(self, batch): return len(batch)
    def over(self): return "c" + super().over()
    @classmethod
    def cm(cls): return cls
    @staticmethod
    def sm(): return 5
    @property
    def prop(self): return 7
    @functools.cached_property
    def cprop(self): return 8
    class Inner:
        def deep(self): return 9
    @contextlib.contextmanager
    def cmgr(self):
        yield 1
"""

PROGRAM = r"""
import asyncio, sys
import target
from target import C
def go():
    target.plain(1); target.nested(); list(target.gen(2)); asyncio.run(target.co(3))
    async def ag():
        return [x async for x in target.agen()]
    asyncio.run(ag())
    target.hidden(); target.decorated(); target.cached(1); target.cached(1)
    try: target.raises()
    except ValueError: pass
    target.recursive(2)
    c = C(); c.inherited(); c.over(); c.method([1,2]); C.cm(); c.cm(); C.sm(); c.prop; c.cprop; c.cprop; C.Inner().deep()
    with c.cmgr(): pass
    g = target.gen(5); next(g); g.close()
go()
"""

LIST = """
target:plain with x=x, n=n   # two attributes
target:nested.<locals>.inner as "the inner"
target:gen
target:co
target:agen
target:hidden
target:decorated
target:cached
target:raises
target:recursive
target:Base.*
target:C.method with size=len(batch), bad=batch.nope counts queue=len(self.queue)
target:C.over as C over
target:C.cm
target:C.sm
target:C.prop
target:C.cprop
target:C.Inner.deep
target:C.cmgr
"""

# What PROGRAM does, as (spans a call, calls): on 3.12 a generator's are the
# slices in which it runs, before that one a call.
ORDINARY = {"plain": 1, "hidden": 1, "decorated": 1, "raises": 1,
            "recursive": 3, "Base.inherited": 1, "Base.over": 1, "C over": 1,
            "C.method": 1, "C.cm": 2, "C.sm": 1, "C.prop": 1, "C.cprop": 1,
            "C.Inner.deep": 1}
SLICES = {**ORDINARY, "the inner": 1, "cached": 1, "co": 2,
          "agen": 4,  # to each yield, to the sleep, to the end
          "C.cmgr": 2}
CALLS = {**ORDINARY, "cached": 2, "gen": 2, "co": 1, "agen": 1, "C.cmgr": 1}

# Prints what it finds odd about functions that are recorded.
MANNERS = r"""
import asyncio, copy, functools, inspect, pickle, sys, target
from target import C

def expect(what, value, wanted):
    if value != wanted:
        print(what, value, wanted)

for function in (target.plain, target.decorated, C.method, C.cm, C.sm):
    expect("pickle", pickle.loads(pickle.dumps(function)), function)
expect("signature", str(inspect.signature(target.plain)), "(x, n=2)")
expect("name", target.plain.__qualname__, "plain")
expect("module", target.plain.__module__, "target")
expect("coroutine", inspect.iscoroutinefunction(target.co), True)
expect("generator", inspect.isgeneratorfunction(target.gen), True)
expect("async generator", inspect.isasyncgenfunction(target.agen), True)
expect("static", type(vars(C)["sm"]), staticmethod)
expect("class", type(vars(C)["cm"]), classmethod)
expect("property", type(vars(C)["prop"]), property)
expect("cached property", type(vars(C)["cprop"]), functools.cached_property)
target.cached(1)
expect("lru_cache", target.cached.cache_info().currsize, 1)
target.cached.cache_clear()
expect("source", "def plain" in inspect.getsource(target.plain), True)
expect("loader", type(target.__spec__.loader).__name__, "SourceFileLoader")
expect("same loader", target.__loader__ is target.__spec__.loader, True)
expect("exec_module", "exec_module" in vars(target.__loader__), False)
expect("self", C().method("abc"), 3)
class D(C):
    def method(self, batch):
        return 10 + super().method(batch)
expect("overridden", D().method("abc"), 13)
try:
    target.plain()
except TypeError as error:
    expect("error", "plain() missing 1 required" in str(error), True)
g = target.gen(3)
expect("send", [next(g), g.send(1), g.send(2)], [0, 1, 2])
async def cancelled():
    task = asyncio.ensure_future(target.co(1))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
expect("cancel", asyncio.run(cancelled()), "cancelled")
print("done")
"""

BAD_LIST = """target:missing
target:C.nothing
oops
target:plain with x=__import__('os')
target:plain with x
target:plain with x=x.__class__
target:plain with x=(lambda: 1)()
target:plain with
target:plain with x=len(
target:a-b
? target:gone
json:dumps
time:sleep
_struct:*
"""


class Traced(Case):
    def trace(self, python, program, functions, words=None, **more):
        (self.folder / "target.py").write_text(TARGET)
        (self.folder / "list.txt").write_text(functions)
        return run([python, *more.pop("options", ()), self.script(program)],
                   cwd=self.folder, env=traced_environment(
                       self.shpd, SHP_OUTPUT_DIR=self.out, SHP_LOG=1,
                       SHP_TRACE=words or self.folder / "list.txt", **more))

    def setUp(self):
        super().setUp()
        self.shpd = self.daemon()

    def each(self):
        for version, python in pythons().items():
            self.out = self.folder / ("out%d.%d" % version)
            yield version, python


class Functions(Traced):
    def test_named_functions_are_spans(self):
        for version, python in self.each():
            result = self.trace(python, PROGRAM, LIST)
            self.assert_ok(result)
            [file] = published(self.out)
            found = collections.Counter(file.names())
            gen = found.pop("gen") if version >= (3, 12) else None
            self.assertEqual(found,
                             SLICES if version >= (3, 12) else CALLS)
            # Three slices of the first; the second is closed while suspended,
            # which runs it once more before 3.13.
            self.assertIn(gen, (None, 4, 5))
            by_name = {span["name"]: span for span in file.spans}
            self.assertEqual(by_name["plain"]["args"], {"x": 1, "n": 2})
            self.assertEqual(by_name["C.method"]["args"], {"size": 2})
            self.assertEqual(file.metadata["bad_args"], 1)
            self.assertEqual(file.metadata["written_counters"], 1)
            self.assertEqual(file.metadata["dropped_spans"], 0)
            self.assertIn("list.txt:13: bad: AttributeError", result.stderr)

    def test_a_coroutine_leaves_a_gap_or_lasts_its_wait(self):
        program = "import asyncio, target; asyncio.run(target.waits())"
        target = "async def waits():\n    await asyncio.sleep(0.2)\n"
        for version, python in self.each():
            (self.folder / "waiting").mkdir(exist_ok=True)
            (self.folder / "waiting" / "target.py").write_text(
                "import asyncio\n" + target)
            self.assert_ok(self.trace(python, program, "target:waits",
                                      PYTHONPATH=self.folder / "waiting",
                                      options=["-c", "import runpy, sys; "
                                               "sys.path[0] = 'waiting'; "
                                               "runpy.run_path(sys.argv[1])"]))
            [file] = published(self.out)
            if version >= (3, 12):
                first, last = file.spans
                self.assertGreater(last["start_ns"] - first["start_ns"]
                                   - first["duration_ns"], 150_000_000)
            else:
                [span] = file.spans
                self.assertGreater(span["duration_ns"], 150_000_000)

    def test_the_program_sees_no_difference(self):
        for _, python in self.each():
            functions = LIST.replace("target:nested.<locals>.inner", "#")
            result = self.trace(python, MANNERS, functions)
            self.assertEqual((result.stdout, result.returncode),
                             ("done\n", 0), result.stderr)

    def test_each_fault_of_a_list_is_a_line(self):
        for version, python in self.each():
            result = self.trace(python, "import target, json, time, struct",
                                BAD_LIST, f"{self.folder}/list.txt,nopreset,"
                                          f"{self.folder}/nofile")
            self.assert_ok(result)
            lines = [line.split(": ", 2)[2].replace(f"{self.folder}/", "")
                     for line in result.stderr.splitlines()]
            for wanted in (
                    "list.txt:1: target has no 'missing'",
                    "list.txt:2: target has no 'C.nothing'",
                    "list.txt:3: 'oops' is not MODULE:FUNCTION",
                    "list.txt:4: \"__import__('os')\": __import__() is not one "
                    "of the functions here",
                    "list.txt:5: 'x' is not KEY=EXPRESSION",
                    "list.txt:6: 'x.__class__': __class__ is not allowed",
                    "list.txt:7: '(lambda: 1)()': Lambda is not allowed",
                    "list.txt:10: 'a-b' in 'target:a-b' is no name",
                    "list.txt:13: time:sleep: is no Python function but a "
                    "builtin_function_or_method",
                    "'nopreset' is neither a file nor a preset",
                    "nofile: No such file or directory"):
                self.assertIn(wanted, lines)
            self.assertFalse([line for line in lines if "gone" in line])
            for number in (8, 9):
                self.assertTrue([line for line in lines if
                                 line.startswith(f"list.txt:{number}: ")])

    def test_development_mode_and_early_ends(self):
        for _, python in self.each():
            result = self.trace(python, "import target; target.plain(1)",
                                "target:plain", options=["-X", "dev"])
            self.assert_ok(result)
            self.assertEqual(result.stderr, "")
            [file] = published(self.out)
            self.assertEqual(file.names(), ["plain"])

    def test_children_by_spawn_and_by_fork(self):
        program = ("import multiprocessing, target\n"
                   "if __name__ == '__main__':\n"
                   "    for way in ('spawn', 'fork'):\n"
                   "        c = multiprocessing.get_context(way)\n"
                   "        p = c.Process(target=target.plain, args=(1,))\n"
                   "        p.start(); p.join()\n")
        for _, python in self.each():
            self.assert_ok(self.trace(python, program, "target:plain"))
            files = published(self.out, 2)
            self.assertEqual([file.names() for file in files],
                             [["plain"], ["plain"]])

    def test_off_is_off(self):
        program = ("import sys, target; target.plain(1)\n"
                   "print([f for f in sys.meta_path if 'shp' in repr(f)], "
                   "'service_host_profiling' in sys.modules)")
        for _, python in self.each():
            (self.folder / "target.py").write_text(TARGET)
            for more in ({}, {"SHP_TRACE": ""},
                         {"SHP_TRACE": "torch",
                          "HOST_SERVICE_PROFILER_ENABLE": 0}):
                result = run([python, self.script(program)], cwd=self.folder,
                             env=traced_environment(self.shpd, **more))
                self.assertEqual(result.stdout, "[] False\n", result.stderr)


class ByRun(Case):
    """`shp run --trace`."""

    def test_files_and_presets_reach_the_program(self):
        (self.folder / "target.py").write_text(TARGET)
        (self.folder / "list.txt").write_text("target:plain\ntarget:gone\n")
        program = self.script("import os; os.chdir('/')\n"
                              "import target; target.plain(1)")
        result = run([SHP, "run", "-o", self.out, "--trace",
                      "list.txt,torch", "--", "python3", program],
                     cwd=self.folder, env=clean_environment())
        self.assert_ok(result)
        [file] = published(self.out)
        self.assertEqual(file.names(), ["plain"])
        self.assertIn("list.txt:2: target has no 'gone'\n", result.stderr)

    def test_a_word_that_is_neither_is_refused(self):
        result = run([SHP, "run", "-o", self.out, "--trace", "sglnag", "--",
                      "true"], env=clean_environment())
        self.assertEqual(result.returncode, 125)
        self.assertEqual(result.stderr,
                         "shp run: --trace: sglnag is neither a file nor one "
                         "of sglang, torch, vllm\n")


NEIGHBOURS = r"""
import sys, target
m = sys.monitoring
lines = []
for tool, name in ((m.DEBUGGER_ID, "debugger"), (m.COVERAGE_ID, "coverage"),
                   (4, "another")):
    if m.get_tool(tool) is None:
        m.use_tool_id(tool, name)
        m.register_callback(tool, m.events.LINE,
                            lambda code, line: lines.append(line))
        m.set_events(tool, m.events.LINE)
target.plain(1)
for tool in range(6):
    if m.get_tool(tool) in ("debugger", "coverage", "another"):
        m.set_events(tool, 0)
print(len(lines) > 0, m.get_tool(4), m.get_tool(3))
"""


class Neighbours(Traced):
    """Others that use sys.monitoring."""

    def test_debuggers_and_coverage_see_what_they_want(self):
        for version, python in self.each():
            if version < (3, 12):
                continue
            result = self.trace(python, NEIGHBOURS, "target:plain")
            self.assertEqual(result.stdout, "True shp None\n", result.stderr)
            [file] = published(self.out)
            self.assertEqual(file.names(), ["plain"])

    def test_all_ids_taken_is_a_line(self):
        first = ("import sys; m = sys.monitoring\n"
                 "for i in range(6): m.use_tool_id(i, 'x')\n")
        for version, python in self.each():
            if version < (3, 12):
                continue
            # sitecustomize is imported before the program, and before us.
            (self.folder / "sitecustomize.py").write_text(first)
            result = self.trace(python, "import target; target.plain(1)",
                                "target:plain", PYTHONPATH=self.folder)
            self.assert_ok(result)
            self.assertIn("SHP_TRACE: all of sys.monitoring's tool ids are "
                          "taken by others", result.stderr)
            os.unlink(self.folder / "sitecustomize.py")


if __name__ == "__main__":
    main()
