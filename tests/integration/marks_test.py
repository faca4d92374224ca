"""Instants and counter values from C, C++ and Python: in the host file, in an
exported trace, and in a merged one, where a second run replaces them."""

import json
import sys

from host_files import HostSession
from merge_case import BASE, Merge, session, trace
from shp_testing import (Case, HostFile, SHP, clean_environment,
                         compile_program, main, published, run,
                         traced_environment)

C_PROGRAM = r"""
#include <math.h>
#include <pthread.h>
#include "shp.h"

static void* work(void* unused) {
  (void)unused;
  for (int i = 0; i < 1000; ++i) shp_counter("in a thread", i);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) shp_start(argv[1], NULL);
  shp_instant("plain");
  shp_instant_json("json", "{\"a\": [1, null]}");
  shp_instant_json("bad", "{");
  const struct shp_arg args[] = {{"n", SHP_I64, {.i64 = 4}}};
  shp_instant_args("typed", args, 1);
  shp_instant("");
  shp_counter("queue", 3);
  shp_counter("queue", 2.5);
  shp_counter("queue", NAN);
  shp_counter_name(shp_intern("queue"), 1e300);
  shp_span_end(shp_span_start("a span"));
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
  if (argc > 1) shp_stop(NULL, 0);
  return 0;
}
"""

CXX_PROGRAM = r"""
#include "shp.h"

int main(int, char** argv) {
  shp_start(argv[1], nullptr);
  static const shp::Name queue("queue");
  shp::instant("plain");
  shp::instant(std::string("text"), {{"s", std::string("t")}});
  shp::instant("json", "{\"x\":1}");
  shp::counter("free", 0.25);
  shp::counter(queue, 7);
  return shp_stop(nullptr, 0);
}
""".replace('std::string("text"),', '"text",')

PY_PROGRAM = r"""
import sys, warnings
import service_host_profiling as shp
print(shp.instant("off"), shp.counter("off", 1))
shp.start(sys.argv[1])
shp.instant("plain")
shp.instant("dict", {"k": [1, "x"]})
shp.instant(name="named", attrs=None)
shp.instant("bad attrs", {"k": object()})
shp.instant("", {})
shp.counter("queue", 3)
shp.counter("queue", value=True)
shp.counter("big", 2**80)
shp.counter("bad", "text")
shp.counter("bad", float("inf"))
for wrong in (lambda: shp.counter("x"), lambda: shp.instant()):
    try:
        wrong()
    except TypeError as error:
        print(error)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    shp.stop()
print([str(w.message) for w in caught])
"""


def marks(path):
    """The file's marks as (type, name, args), read by Python's json."""
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    begin, end = rows[0]["start_monotonic_ns"], rows[0]["stop_monotonic_ns"]
    found = [row for row in rows if row["type"] in ("instant", "counter")]
    for row in found:
        assert list(row) == ["type", "pid", "tid", "name", "time_ns",
                             "args"], row
        assert row["pid"] == rows[0]["pid"] and row["tid"] > 0, row
        assert begin <= row["time_ns"] <= end, row
    for kind in ("instant", "counter"):
        assert rows[0][f"written_{kind}s"] == sum(
            row["type"] == kind for row in found), rows[0]
    return [(row["type"], row["name"], row["args"]) for row in found]


class Recording(Case):
    C_MARKS = [("instant", "plain", {}),
               ("instant", "json", {"a": [1, None]}), ("instant", "bad", {}),
               ("instant", "typed", {"n": 4}),
               ("counter", "queue", {"value": 3}),
               ("counter", "queue", {"value": 2.5}),
               ("counter", "queue", {"value": 1e300})]

    def check_c(self, path):
        found = marks(path)
        self.assertEqual([m for m in found if m[1] != "in a thread"],
                         self.C_MARKS)
        self.assertEqual([m[2]["value"] for m in found
                          if m[1] == "in a thread"], list(range(1000)))
        file = HostFile(path)
        self.assertEqual(file.names(), ["a span"])
        self.assertEqual(file.metadata["dropped_spans"], 0)
        self.assertEqual(file.metadata["dropped_marks"], 2)
        self.assertEqual(file.metadata["bad_args"], 1)

    def test_a_c_program(self):
        program = compile_program(self.script(C_PROGRAM, "program.c"),
                                  self.folder / "program", "-pthread", "-ldl")
        self.assert_ok(run([program, self.out], env=clean_environment()))
        self.assertFalse(self.out.exists())
        daemon = self.daemon()
        self.assert_ok(run([program, self.out],
                           env=traced_environment(daemon)))
        [file] = published(self.out)
        self.check_c(file.path)

    def test_a_process_whose_first_call_is_a_mark(self):
        program = compile_program(self.script(C_PROGRAM, "program.c"),
                                  self.folder / "program", "-pthread", "-ldl")
        self.assert_ok(run([program], env=traced_environment(
            self.daemon(), SHP_OUTPUT_DIR=self.out)))
        [file] = published(self.out)
        self.check_c(file.path)

    def test_a_cxx_program(self):
        program = compile_program(self.script(CXX_PROGRAM, "program.cpp"),
                                  self.folder / "program", "-ldl", cxx=True)
        self.assert_ok(run([program, self.out],
                           env=traced_environment(self.daemon())))
        [file] = published(self.out)
        self.assertEqual(marks(file.path), [
            ("instant", "plain", {}), ("instant", "text", {"s": "t"}),
            ("instant", "json", {"x": 1}),
            ("counter", "free", {"value": 0.25}),
            ("counter", "queue", {"value": 7})])

    def test_a_python_program(self):
        result = run([sys.executable, self.script(PY_PROGRAM), self.out],
                     env=traced_environment(self.daemon()))
        self.assert_ok(result)
        self.assertEqual(result.stdout, """None None
counter() missing 1 required positional argument: 'value'
instant() missing 1 required positional argument: 'name'
['service_host_profiling: 1 spans were written without their attrs \
(first: Object of type object is not JSON serializable); \
3 marks or counter values were not recorded (first: a name that is empty or \
holds NUL)']
""")
        [file] = published(self.out)
        self.assertEqual(marks(file.path), [
            ("instant", "plain", {}), ("instant", "dict", {"k": [1, "x"]}),
            ("instant", "named", {}), ("instant", "bad attrs", {}),
            ("counter", "queue", {"value": 3}),
            ("counter", "queue", {"value": 1}),
            ("counter", "big", {"value": 2**80})])
        self.assertEqual(file.metadata["dropped_marks"], 3)
        self.assertEqual(file.metadata["bad_args"], 1)


def add_mark(made: HostSession, kind, name, us, args):
    made.lines.append({"type": kind, "pid": made.pid, "tid": made.pid,
                       "name": name, "args": args,
                       "time_ns": BASE + us * 1000 - made.offset})


def marked(instants=1, **more):
    made = session(**more)
    add_mark(made, "instant", "oom", 2500, {"n": 1})
    add_mark(made, "counter", "queue", 3000, {"value": 4})
    add_mark(made, "counter", "queue", 9500, {"value": 0})
    made.extra = {"written_instants": instants, "written_counters": 2}
    return made


def shown(path):
    """Our marks in a trace as (phase, name, ts, args), in its order."""
    events = json.loads(path.read_bytes())["traceEvents"]
    return [(e["ph"], e["name"], e["ts"], e["args"], e.get("s"))
            for e in events if e.get("cat") == "shp" and e["ph"] in "iC"]


class Showing(Merge):
    INSTANT = ("i", "oom", 2500, {"n": 1}, "t")
    COUNTER = ("C", "queue", 3000, {"value": 4}, None)

    def test_a_merge_puts_them_in_and_replaces_them(self):
        path = self.put("a.json", trace())
        before = json.loads(path.read_bytes())
        self.put_host(made=marked())
        line = ("a.json: 1 span and 2 marks from 1 host file, clock realtime, "
                "\u00b1200 ns\n")
        self.expect(self.merge(), 0, line)
        self.assertEqual(shown(path), [self.INSTANT, self.COUNTER])
        once = path.read_bytes()
        self.expect(self.merge(), 0, line)
        self.assertEqual(path.read_bytes(), once)
        document = json.loads(once)
        document["traceEvents"] = [e for e in document["traceEvents"]
                                   if e.get("cat") != "shp"]
        self.assertEqual(document, before)

    def test_an_instant_stands_on_the_row_of_its_threads_spans(self):
        path = self.put("a.json", trace())
        self.put_host(made=marked())
        self.merge()
        rows = {e["tid"] for e in json.loads(path.read_bytes())["traceEvents"]
                if e.get("cat") == "shp" and e["ph"] in "iX"}
        self.assertEqual(len(rows), 1)
        self.assertNotEqual(rows, {7})

    def test_a_count_that_does_not_hold_is_refused(self):
        self.put("a.json", trace())
        self.put_host(made=marked(instants=3))
        result = self.merge()
        self.assertEqual(result.returncode, 1)
        self.assertIn("one.jsonl: holds 1 instants, its metadata says 3",
                      result.stderr + result.stdout)

    def test_an_export_shows_all_of_them(self):
        host = self.put_host(made=marked())
        target = self.folder / "t.json"
        result = run([SHP, "export", host, "-o", target],
                     env=clean_environment())
        self.assert_ok(result)
        self.assertTrue(result.stdout.endswith(
            ": 1 span and 3 marks from 1 host file\n"), result.stdout)
        self.assertEqual([mark[:2] for mark in shown(target)],
                         [("i", "oom"), ("C", "queue"), ("C", "queue")])


if __name__ == "__main__":
    main()
