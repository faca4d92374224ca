"""service_host_profiling.parser: the checking reader, export and merge."""

import json
import sqlite3
import sys

from shp_pythons import pythons
from shp_testing import Case, main, run, traced_environment

RECORD = """
import os, sys, time
import service_host_profiling as shp
shp.start(sys.argv[1], session_id="mine")
for i in range(3):
    with shp.span("step", {"i": i}): time.sleep(0.001)
print(os.getpid()); print(shp.stop()); print(time.time_ns())
"""

CALL = """
import json, sys
import service_host_profiling.parser as parser
function, *words = sys.argv[1:]
try:
    result = eval(function)(*words)
    print(json.dumps(result, default=str))
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""
READ = "lambda path: [r['name'] for r in parser.open_host_file(path).spans()]"


class Parser(Case):
    def setUp(self):
        super().setUp()
        self.environment = traced_environment(self.daemon())

    def record(self):
        result = run([sys.executable, self.script(RECORD), self.out],
                     env=self.environment)
        self.assert_ok(result)
        pid, path, now = result.stdout.split()
        return int(pid), path, int(now)

    def call(self, function, *words, python=sys.executable):
        result = run([python, self.script(CALL, "call.py"), function, *words],
                     env=self.environment)
        self.assert_ok(result)
        return json.loads(result.stdout)

    def edited(self, path, change, name="edited.jsonl"):
        with open(path, encoding="utf-8") as stream:
            lines = stream.readlines()
        target = self.folder / name
        target.write_text("".join(change(lines)), encoding="utf-8")
        return target

    def test_reads_what_was_recorded(self):
        _, path, _ = self.record()
        for python in pythons().values():
            self.assertEqual(self.call(READ, path, python=python),
                             ["step"] * 3)

    def test_says_what_is_wrong_and_in_which_line(self):
        _, path, _ = self.record()
        with open(path, encoding="utf-8") as stream:
            spans = [number for number, line in enumerate(stream)
                     if '"type":"span"' in line]
        first, last = spans[0], spans[-1]

        def replace(number, old, new):
            def change(lines):
                self.assertIn(old, lines[number])
                lines[number] = lines[number].replace(old, new, 1)
                return lines
            return change

        def drop(number):
            return lambda lines: lines[:number] + lines[number + 1:]
        rows = [
            (replace(last, '"id":3', '"id":2'), last, "span id is 2, not 3"),
            (replace(first, '"duration_ns":', '"duration_ns":-'), first,
             "duration_ns is no count"),
            (replace(first, '"name":"step"', '"name":""'), first,
             "span without a name"),
            (replace(first, '"args":{"i":0}', '"args":[]'), first,
             "args is no object"),
            (replace(first, '"i":0', '"i":NaN'), first, "NaN is no JSON"),
            (replace(first, '"duration_ns":', '"duration_ns":9' + "0" * 18),
             first, "span outside its session"),
            (replace(0, '"schema_version":3', '"schema_version":4'), 0,
             "schema_version is not 3"),
            (replace(0, '"written_spans":3', '"written_spans":-3'), 0,
             "written_spans is no count"),
            (replace(0, '"type":"metadata"', '"type":"meta"'), 0,
             "not the metadata of a host file"),
        ]
        for change, number, reason in rows:
            with self.subTest(reason):
                target = self.edited(path, change)
                self.assertEqual(
                    self.call(READ, target),
                    ["ValueError", f"{target}: line {number + 1}: {reason}"])
        target = self.edited(path, drop(last))
        kind, text = self.call(READ, target)
        self.assertEqual(kind, "ValueError")
        self.assertIn("2 spans, where the metadata counts 3", text)
        target = self.edited(path, lambda lines: lines[:last]
                             + [lines[last][:30]])
        self.assertIn("the line is cut off", self.call(READ, target)[1])
        self.assertEqual(self.call(READ, "/absent.jsonl")[0],
                         "FileNotFoundError")

    def test_reads_historical_files(self):
        path = self.folder / "old.db"
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE metadata (key TEXT, value TEXT)")
        database.executemany("INSERT INTO metadata VALUES (?, ?)",
                             [("pid", "7"), ("complete", "true"),
                              ("written_spans", "2")])
        database.execute("CREATE TABLE spans (pid INT, tid INT, name TEXT, "
                         "start_ns INT, end_ns INT, attrs TEXT)")
        database.executemany("INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?)",
                             [(7, 7, "a", 10, 25, '{"k": 1}'),
                              (7, 8, "b", 30, 31, None)])
        database.commit()
        whole = "lambda path: list(parser.open_host_file(path).spans())"
        self.assertEqual(self.call(whole, path), [
            {"type": "span", "id": 1, "pid": 7, "tid": 7, "name": "a",
             "start_ns": 10, "duration_ns": 15, "args": {"k": 1}},
            {"type": "span", "id": 2, "pid": 7, "tid": 8, "name": "b",
             "start_ns": 30, "duration_ns": 1, "args": {}}])
        database.execute("DELETE FROM spans WHERE name = 'b'")
        database.commit()
        self.assertEqual(self.call(READ, path)[0], "ValueError")
        database.execute("DROP TABLE spans")
        database.commit()
        self.assertEqual(self.call(READ, path),
                         ["ValueError", f"{path}: no table of spans"])
        path.write_text("no database")
        self.assertEqual(self.call(READ, path)[0], "ValueError")

    def test_exports(self):
        _, path, _ = self.record()
        output = self.folder / "trace.json"
        self.assertEqual(self.call("parser.export_chrome_trace", path, output),
                         str(output))
        trace = json.loads(output.read_text())
        events = trace if isinstance(trace, list) else trace["traceEvents"]
        self.assertEqual([e["name"] for e in events
                          if e.get("ph") == "X"], ["step"] * 3)
        kind, text = self.call("parser.export_chrome_trace", "/absent.jsonl",
                               output)
        self.assertEqual(kind, "ValueError")
        self.assertIn("/absent.jsonl", text)

    def trace_of(self, pid, now, folder):
        """A small Kineto trace of this process, of the minute around `now`."""
        base = 1_600_000_000_000_000_000
        at = (now - base) / 1000
        events = [
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0,
             "args": {"name": "python"}},
            {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0,
             "ts": 0, "args": {"labels": "CPU"}},
            *({"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": pid,
               "tid": pid, "ts": at - 60e6 + 10e6 * i, "dur": 5.0,
               "args": {"External id": i}} for i in range(12)),
        ]
        folder.mkdir(exist_ok=True)
        path = folder / f"rank{pid}.pt.trace.json"
        path.write_text(json.dumps({
            "schemaVersion": 1, "baseTimeNanoseconds": base,
            "displayTimeUnit": "ms", "traceEvents": events}, indent=2))
        return path

    def test_merges(self):
        pid, path, now = self.record()
        other_pid, other, _ = self.record()
        trace = self.trace_of(pid, now, self.folder / "torch")
        # One of two files of a directory: the other must stay out of it.
        self.assertEqual(
            self.call("lambda host, torch: "
                      "parser.merge_torch_directory([host], torch)",
                      path, trace.parent), [str(trace)])
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertEqual(len([e for e in events if e.get("name") == "step"]),
                         3)
        kind, text = self.call(
            "lambda host, torch: parser.merge_torch_directory([host], torch)",
            other, trace.parent)
        self.assertEqual(kind, "ValueError", text)
        self.assertEqual(self.call(
            "lambda host, torch: parser.merge_torch_directory("
            "[host], torch, clock_offset_ns=1, clock_anchors_ns=[])", other,
            trace.parent)[0], "ValueError")
        self.assertEqual(self.call(
            "lambda host, torch, a, b: parser.merge_torch_directory("
            "[host], torch, pid_map={int(a): int(b)})", other, trace.parent,
            other_pid, pid), [str(trace)])


if __name__ == "__main__":
    main()
