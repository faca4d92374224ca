"""What people do on their first day, and must find ordinary.

Each program records by SHP_OUTPUT_DIR under a preload by hand, with a daemon
started by hand, and says on stdout what should be in its files.
"""

import json
import signal
import subprocess
import sys

from shp_testing import (Case, SLOW, main, published, run, traced_environment,
                         wait_for)

PRELUDE = """
import os, sys, threading, time
import service_host_profiling as shp
def spans(name, count, **attrs):
    for _ in range(count):
        shp.span_end(shp.span_start(name, attrs or None))
"""


class DayOne(Case):
    def setUp(self):
        super().setUp()
        self.running = self.daemon()

    def environment(self, **extra):
        return traced_environment(self.running, SHP_OUTPUT_DIR=self.out,
                                  **extra)

    def record(self, text, *arguments, status=0, files=1, seconds=60):
        """Runs a program; its stdout and the host files by pid."""
        program = self.script(PRELUDE + text)
        result = run([sys.executable, program, *arguments], cwd=self.folder,
                     env=self.environment(), seconds=seconds)
        self.assertEqual(result.returncode, status, result.stderr)
        found = published(self.out, files)
        self.assertEqual(len(found), files)
        return result, {f.metadata["pid"]: f for f in found}

    def one(self, text, *arguments, **how):
        _, found = self.record(text, *arguments, **how)
        return next(iter(found.values()))


class Threads(DayOne):
    def test_two_hundred_threads_lose_nothing(self):
        file = self.one("""
threads = [threading.Thread(target=spans, args=("t", 1000))
           for _ in range(200)]
for t in threads: t.start()
for t in threads: t.join()
""", seconds=120)
        self.assertEqual(file.count("t"), 200_000)
        self.assertEqual(file.metadata["dropped_spans"], 0)
        by_thread = {}
        for span in file.spans:
            by_thread[span["tid"]] = by_thread.get(span["tid"], 0) + 1
        # The kernel may give a tid again once its thread has gone.
        self.assertEqual({n % 1000 for n in by_thread.values()}, {0})

    def test_thousands_of_short_lived_threads_lose_nothing(self):
        file = self.one("""
for i in range(3000):
    t = threading.Thread(target=spans, args=("short", 2))
    t.start()
    t.join()
""", seconds=120)
        self.assertEqual(file.count("short"), 6000)
        self.assertEqual(file.metadata["dropped_spans"], 0)

    def test_executor_threads_are_recorded_on_their_own_rows(self):
        file = self.one("""
from concurrent.futures import ThreadPoolExecutor
barrier = threading.Barrier(4)
def task(i):
    barrier.wait()
    spans("task", 10, i=i)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(task, range(4)))
""")
        self.assertEqual(file.count("task"), 40)
        self.assertEqual(len(file.tids()), 4)


class Processes(DayOne):
    def test_multiprocessing_by_every_method(self):
        for method in ("spawn", "fork", "forkserver"):
            with self.subTest(method):
                self.out = self.folder / method
                result, found = self.record("""
import multiprocessing
def child(n):
    spans("child", n)
    # One write: these run at once, and print makes several where it is unbuffered.
    os.write(1, b"child %d %d\\n" % (os.getpid(), n))
if __name__ == "__main__":
    spans("parent", 5)
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=child, args=(n,)) for n in (10, 20, 30)]
    for w in workers: w.start()
    for w in workers: w.join()
    assert [w.exitcode for w in workers] == [0, 0, 0]
    spans("parent", 5)
    print("parent", os.getpid(), 10, flush=True)
""", method, files=4)
                lines = [l.split() for l in result.stdout.splitlines()]
                self.assertEqual(len(lines), 4)
                for name, pid, count in lines:
                    file = found[int(pid)]
                    self.assertEqual(file.names(), [name] * int(count))

    def test_process_pool_workers_each_have_their_file(self):
        result, found = self.record("""
from concurrent.futures import ProcessPoolExecutor
def task(i):
    spans("task", 3, i=i)
    time.sleep(0.02)
    return os.getpid()
if __name__ == "__main__":
    spans("main", 1)
    with ProcessPoolExecutor(2) as pool:
        print(len(set(pool.map(task, range(20)))))
""", files=3)
        self.assertEqual(result.stdout, "2\n")
        self.assertEqual(sum(f.count("task") for f in found.values()), 60)
        self.assertEqual({s["args"]["i"] for f in found.values()
                          for s in f.spans if s["name"] == "task"},
                         set(range(20)))

    def test_subprocesses_are_recorded_and_others_do_not_mind(self):
        child = self.script(PRELUDE + "spans('child', 4)\n", "child.py")
        _, found = self.record(f"""
import subprocess
spans("parent", 2)
subprocess.run([sys.executable, {str(child)!r}], check=True)
assert subprocess.check_output(["echo", "hello"]) == b"hello\\n"
assert os.system("true") == 0
""", files=2)
        self.assertEqual(sorted(len(f.spans) for f in found.values()), [2, 4])

    def test_a_fork_that_goes_on_recording_has_a_file_of_its_own(self):
        result, found = self.record("""
open_in_parent = shp.span_start("parent")
pid = os.fork()
if pid == 0:
    shp.span_end(open_in_parent)  # not the child's: does nothing
    spans("child", 3)
    sys.exit(0)
os.waitpid(pid, 0)
shp.span_end(open_in_parent)
print(pid)
""", files=2)
        child = found.pop(int(result.stdout))
        [parent] = found.values()
        self.assertEqual(child.names(), ["child"] * 3)
        self.assertEqual(parent.names(), ["parent"])
        self.assertEqual(child.metadata["ppid"], parent.metadata["pid"])

    def test_a_fork_while_threads_record_harms_neither(self):
        _, found = self.record("""
stop = False
def busy():
    while not stop:
        spans("busy", 100)
threads = [threading.Thread(target=busy) for _ in range(3)]
for t in threads: t.start()
for i in range(5):
    pid = os.fork()
    if pid == 0:
        spans("child", 50)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
for t in threads: t.join()
""", files=6)
        children = [f for f in found.values() if "child" in f.names()]
        self.assertEqual([f.names() for f in children], [["child"] * 50] * 5)

    def test_a_directory_that_is_removed_while_recording_ends_the_session(self):
        # Seen to fail: the daemon tried to publish for ever, and never ended.
        program = self.script(PRELUDE + """
import shutil
spans("before", 3)
shutil.rmtree(os.environ["SHP_OUTPUT_DIR"])
spans("after", 3)
""")
        self.assert_ok(run([sys.executable, program], env=self.environment()))
        wait_for(lambda: not self.running.status()["sessions"], 20,
                 "the session to end")
        self.assertFalse(self.out.exists())

    def test_exec_in_the_middle_keeps_both_programs_spans(self):
        program = self.script(PRELUDE + """
if len(sys.argv) < 2:
    spans("before", 7)
    os.execv(sys.executable, [sys.executable, __file__, "again"])
spans("after", 3)
""")
        self.assert_ok(run([sys.executable, program], env=self.environment()))
        found = published(self.out, 2)
        names = sorted(tuple(f.names()) for f in found)
        self.assertEqual(names, [("after",) * 3, ("before",) * 7])
        reasons = {f.metadata["end_reason"] for f in found}
        self.assertEqual(reasons, {"exec", "exit"})


class Endings(DayOne):
    def test_os_exit_loses_no_ended_span(self):
        file = self.one("""
spans("work", 1000)
shp.span_start("open")
os._exit(0)
""")
        self.assertEqual(file.names(), ["work"] * 1000)
        self.assertEqual([s["name"] for s in file.open_spans], ["open"])
        self.assertEqual(file.metadata["dropped"]["unfinished"], 1)

    def test_an_unhandled_exception_is_an_ordinary_end(self):
        file = self.one("""
with shp.span("outer"):
    spans("work", 3)
    raise ValueError("through a span")
""", status=1)
        self.assertEqual(sorted(file.names()), ["outer"] + ["work"] * 3)
        self.assertEqual(file.metadata["end_reason"], "exit")

    def test_abort_keeps_what_ended(self):
        file = self.one("spans('work', 50)\nos.abort()\n",
                        status=-signal.SIGABRT)
        self.assertEqual(file.names(), ["work"] * 50)
        self.assertEqual(file.metadata["end_reason"], "killed")

    def test_a_segmentation_fault_keeps_what_ended(self):
        file = self.one("""
import ctypes, faulthandler
spans("work", 50)
open_span = shp.span_start("last words")
os.kill(os.getpid(), 11)
""", status=-signal.SIGSEGV)
        self.assertEqual(file.names(), ["work"] * 50)
        self.assertEqual([s["name"] for s in file.open_spans], ["last words"])

    def test_ctrl_c_keeps_what_ended(self):
        program = self.script(PRELUDE + """
spans("work", 20)
with shp.span("waiting"):
    print("ready", flush=True)
    time.sleep(30)
""")
        process = subprocess.Popen([sys.executable, str(program)],
                                   env=self.environment(),
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30 * SLOW)
        self.assertIn("KeyboardInterrupt", err)
        [file] = published(self.out)
        self.assertEqual(file.names(), ["work"] * 20 + ["waiting"])

    def test_a_session_that_is_never_stopped_is_published(self):
        program = self.script(PRELUDE + f"""
shp.start({str(self.out)!r})
spans("work", 11)
""")
        self.assert_ok(run([sys.executable, program],
                           env=traced_environment(self.running)))
        [file] = published(self.out)
        self.assertEqual(file.names(), ["work"] * 11)
        self.assertEqual(file.metadata["end_reason"], "exit")

    def test_exceptions_end_their_spans(self):
        file = self.one("""
@shp.profile("inner")
def inner():
    raise KeyError("x")
for _ in range(5):
    try:
        with shp.span("outer"):
            inner()
    except KeyError:
        pass
""")
        self.assertEqual(file.count("inner"), 5)
        self.assertEqual(file.count("outer"), 5)
        self.assertEqual(file.metadata["dropped_spans"], 0)


class Asyncio(DayOne):
    def test_overlapping_spans_of_one_thread_are_all_kept(self):
        file = self.one("""
import asyncio
async def task(i):
    with shp.span("await", {"i": i}):
        await asyncio.sleep(0.01 * (i % 7))
async def main():
    await asyncio.gather(*(task(i) for i in range(100)))
asyncio.run(main())
""")
        self.assertEqual(file.count("await"), 100)
        self.assertEqual({s["args"]["i"] for s in file.spans},
                         set(range(100)))
        self.assertEqual(file.metadata["dropped_spans"], 0)

    def test_more_open_spans_than_slots_are_kept_when_they_end(self):
        file = self.one("""
ids = [shp.span_start("open", {"i": i}) for i in range(1000)]
for span in ids: shp.span_end(span)
""")
        self.assertEqual(file.count("open"), 1000)
        self.assertEqual(file.metadata["dropped_spans"], 0)


class Attributes(DayOne):
    def test_come_back_as_python_wrote_them(self):
        attrs = {"text": 'a"b\\c\n\u00e9\u4e2d\U0001f600\x7f\x01', "n": 2**63,
                 "neg": -5, "f": 1e-300, "t": True, "none": None,
                 "list": [1, [2, {"x": []}]], "d": {"": ""}}
        file = self.one(f"""
import json
shp.span_end(shp.span_start("span", json.loads({json.dumps(attrs)!r})))
""")
        self.assertEqual(file.spans[0]["args"], attrs)

    def test_a_bad_one_costs_the_span_its_args_only(self):
        result, found = self.record("""
shp.span_end(shp.span_start("bad", {"x": object()}))
shp.span_end(shp.span_start("good", {"x": 1}))
""")
        [file] = found.values()
        self.assertEqual([(s["name"], s["args"]) for s in file.spans],
                         [("bad", {}), ("good", {"x": 1})])
        self.assertEqual(file.metadata["bad_args"], 1)



if __name__ == "__main__":
    main()
