"""`shp export` by its command line: host files of several processes and hosts,
closed JSONL and historical SQLite, into .json, .json.gz and standard output.

Expected events are worked out from the rows by this script's own arithmetic.
"""

import gzip
import json
import os
import sqlite3

from host_files import HostSession, write_database
from shp_testing import Case, SHP, clean_environment, main, run

BEGIN = 1_796_128_747 * 10**9
BASE = BEGIN // (7_889_238 * 10**9) * 7_889_238 * 10**9
ERROR = "shp export: "


def session(pid=7, hostname="host-a", begin=BEGIN, spans=3):
    made = HostSession(pid, begin, begin + 10**9, hostname)
    for i in range(spans):
        made.span(f"s{i}", begin + 1000 * i + 7, 500, args={"i": i})
    return made


class Export(Case):
    needs = (SHP,)

    def export(self, *arguments, output=None):
        self.target = self.folder / "t.json" if output is None else output
        return run([SHP, "export", *arguments, "-o", self.target],
                   env=clean_environment())

    def fails(self, result, message):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.replace(f"{self.folder}/", ""),
                         f"{ERROR}{message}\n")
        self.assertEqual(result.stdout, "")
        self.assertEqual([n for n in os.listdir(self.folder)
                          if n.startswith((".shp", "t.json"))], [])

    def events(self, path=None):
        raw = (path or self.target).read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        document = json.loads(raw)
        self.assertEqual(document["baseTimeNanoseconds"], BASE)
        self.assertEqual(document["displayTimeUnit"], "ns")
        return document["traceEvents"]

    def slices(self):
        return [(e["pid"], e["tid"], e["name"], round(e["ts"] * 1000) + BASE,
                 round(e["dur"] * 1000), e["args"])
                for e in self.events() if e["ph"] == "X"]


class Jsonl(Export):
    def test_spans_stand_on_the_wall_clock(self):
        path = session().write(self.folder / "a.jsonl")
        result = self.export(path)
        self.assert_ok(result)
        self.assertEqual(result.stdout,
                         f"{self.target}: 3 spans from 1 host file\n")
        self.assertEqual(self.slices(), [
            (7, 7, f"s{i}", BEGIN + 1000 * i + 7, 500, {"i": i})
            for i in range(3)])

    def test_gz_and_standard_output_hold_the_same(self):
        path = session().write(self.folder / "a.jsonl")
        self.assert_ok(self.export(path))
        plain = self.target.read_bytes()
        self.assert_ok(self.export(path, output=self.folder / "t.json.gz"))
        self.assertEqual(gzip.decompress(self.target.read_bytes()), plain)
        result = run([SHP, "export", path, "-o", "-"],
                     env=clean_environment())
        self.assert_ok(result)
        self.assertEqual(result.stdout.encode(), plain)

    def test_processes_of_several_hosts_keep_apart(self):
        session().write(self.folder / "in" / "a.jsonl")
        session(begin=BEGIN + 2 * 10**9).write(self.folder / "in" / "a2.jsonl")
        session(hostname="host-b").write(self.folder / "in" / "deep" /
                                         "b.jsonl")
        session(8).write(self.folder / "in" / "c.jsonl")
        self.assert_ok(self.export(self.folder / "in"))
        names = {e["pid"]: e["args"]["name"] for e in self.events()
                 if e["name"] == "process_name"}
        self.assertEqual(sorted(names.values()),
                         ["@ host-a (7)", "@ host-a (8)", "@ host-b (7)"])
        counts = {}
        for row in self.slices():
            counts[names[row[0]]] = counts.get(names[row[0]], 0) + 1
        self.assertEqual(counts, {"@ host-a (7)": 6, "@ host-a (8)": 3,
                                  "@ host-b (7)": 3})

    def test_spans_nest_or_become_pairs(self):
        made = HostSession(7, BEGIN, BEGIN + 10**9)
        made.span("late inner", BEGIN + 20, 30)
        made.span("outer", BEGIN + 10, 100)
        made.span("crossing", BEGIN + 60, 100, args={"a": [1]})
        made.span("same start, longer", BEGIN + 10, 200)
        made.lines = [{"type": "thread", "tid": 7, "name": "Haupt\u00e4"},
                      {"type": "open_span", "tid": 7, "name": "open",
                       "start_ns": BEGIN + 70 - made.offset}]
        self.assert_ok(self.export(made.write(self.folder / "a.jsonl")))
        events = self.events()
        self.assertEqual([(e["ph"], e["name"]) for e in events
                          if e["ph"] != "M"],
                         [("X", "same start, longer"), ("X", "outer"),
                          ("X", "late inner"), ("b", "crossing"),
                          ("e", "crossing"), ("i", "open")])
        rows = [e["args"]["name"] for e in events
                if e["name"] == "thread_name"]
        self.assertEqual(rows, ["Haupt\u00e4 (7)"])

    def test_a_set_wall_clock_keeps_the_order_and_is_said(self):
        made = session()
        made.lines = [{"type": "clock", "monotonic_ns": at - made.offset,
                       "realtime_ns": at + jump, "uncertainty_ns": 10}
                      for at, jump in ((BEGIN, 0), (BEGIN + 1100, 50_000_000),
                                       (BEGIN + 10**9, 50_000_000))]
        result = self.export(made.write(self.folder / "a.jsonl"))
        self.assert_ok(result)
        self.assertIn("the wall clock was set during the session (by 50000000"
                      " ns)", result.stderr)
        self.assertEqual([row[3] for row in self.slices()],
                         [BEGIN + 1000 * i + 7 for i in range(3)])

    def test_an_incomplete_file_is_taken_with_a_warning(self):
        made = session()
        made.extra = {"complete": False, "end_reason": "killed"}
        result = self.export(made.write(self.folder / "a.jsonl"))
        self.assert_ok(result)
        self.assertEqual(result.stderr, f"{ERROR}warning: {self.folder}/a.jsonl"
                         ": is not complete (killed)\n")

    def test_many_spans_need_no_more_memory_than_few(self):
        made = session(spans=0)
        for i in range(300_000):
            made.span("step", BEGIN + 1000 * (300_000 - i), 900,
                      args={"text": "x" * 50})
        path = made.write(self.folder / "a.jsonl")
        self.assert_ok(self.export(path))
        starts = [row[3] for row in self.slices()]
        self.assertEqual(starts, sorted(starts))
        self.assertEqual(len(starts), 300_000)

    def test_bad_input_is_one_line_and_leaves_nothing(self):
        path = session().write(self.folder / "a.jsonl")
        text = path.read_text()
        for change, message in (
                (lambda t: t[:-30], "a.jsonl: line 4: is not whole JSON "
                                    "(cut off?)"),
                (lambda t: "".join(t.splitlines(True)[:-1]),
                 "a.jsonl: holds 2 spans, its metadata says 3 (cut off or "
                 "edited)"),
                (lambda t: t.replace('"id":3', '"id":2'),
                 "a.jsonl: line 4: span id 2 is there twice"),
                (lambda t: t.replace('"duration_ns":500', '"duration_ns":-1'),
                 "a.jsonl: line 2: span ends before it starts"),
                (lambda t: "", "a.jsonl: is empty"),
                (lambda t: "{}", "a.jsonl: line 1: is not a host file's "
                                 "metadata")):
            path.write_text(change(text))
            self.fails(self.export(path), message)
        self.fails(self.export(self.folder / "none.jsonl"),
                   "none.jsonl: No such file or directory")

    def test_what_was_there_stays_until_the_new_one_is_whole(self):
        path = session().write(self.folder / "a.jsonl")
        target = self.folder / "t.json"
        target.write_text("old")
        path.write_text(path.read_text()[:-5])
        self.assertEqual(self.export(path).returncode, 1)
        self.assertEqual(target.read_text(), "old")

    def test_an_output_that_cannot_be_made_is_one_line(self):
        path = session().write(self.folder / "a.jsonl")
        result = self.export(path, output=self.folder / "no" / "t.json")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, f"{ERROR}{self.folder}/no: No such "
                         "file or directory\n")

    def test_usage(self):
        for arguments in (["export"], ["export", "x"],
                          ["export", "-o", "y"]):
            result = run([SHP, *arguments], env=clean_environment())
            self.assertEqual(result.returncode, 2)
            self.assertTrue(result.stderr.startswith(ERROR), result.stderr)
        result = run([SHP, "export", "--help"], env=clean_environment())
        self.assertIn("shp export out/ -o trace.json.gz", result.stdout)


class Sqlite(Export):
    """The layouts that are known of: columns by name, metadata as JSON."""

    def database(self, made, columns, rows=None, name="old.db", meta=None,
                 table="spans"):
        path = self.folder / name
        return write_database(path, made, columns, meta, rows, table)

    WANT = [(7, 7, f"s{i}", BEGIN + 1000 * i + 7, 500, {"i": i})
            for i in range(3)]

    def test_columns_are_found_by_name(self):
        for number, columns in enumerate((
                ("id", "pid", "tid", "name", "start_ns", "duration_ns",
                 "args"),
                ("attrs", "end_ns", "start_ns", "name", "tid"),
                ("tid", "name", "start_ns", "end_ns", "pid"))):
            path = self.database(session(), columns, name=f"{number}.db",
                                 table=f'sp"an {number}'.replace('"', ""))
            self.assert_ok(self.export(path))
            want = self.WANT if "pid" not in columns or number == 0 else [
                (*row[:5], {}) for row in self.WANT]
            self.assertEqual(self.slices(), want)

    def test_a_directory_may_hold_both_kinds(self):
        columns = ("tid", "name", "start_ns", "end_ns")
        self.database(session(8), columns, name="in/old.sqlite")
        session().write(self.folder / "in" / "new.jsonl")
        other = sqlite3.connect(self.folder / "in" / "device.db")
        other.execute("CREATE TABLE kernels(name TEXT)")
        other.commit()
        other.close()
        self.assert_ok(self.export(self.folder / "in"))
        self.assertEqual(len(self.slices()), 6)

    def test_rows_and_counts_are_checked(self):
        columns = ("id", "tid", "name", "start_ns", "duration_ns", "args")
        good = session().rows

        def changed(**values):
            return [*good[:2], {**good[2], **values}]

        for number, (rows, meta, message) in enumerate((
                (changed(id=2), {}, "row 3: span id 2 is there twice"),
                (changed(duration_ns=-1), {}, "row 3: span ends before it "
                                              "starts"),
                (changed(name=""), {}, "row 3: name is empty or holds NUL"),
                (changed(name=5.5), {}, "row 3: name is not text"),
                (changed(tid="x"), {}, "row 3: tid is not an integer"),
                (changed(args=[1]), {}, "row 3: args is not a JSON object"),
                (changed(start_ns=1), {}, "row 3: span is not within the "
                                          "session"),
                (good[:2], {}, "holds 2 spans, its metadata says 3 (cut off "
                               "or edited)"),
                (good, {"pid": "seven"}, "metadata: pid is not an integer"),
                (good, {"schema_version": 9}, "metadata: schema_version is "
                                              "not 3"))):
            path = self.database(session(), columns, rows, f"{number}.db",
                                 meta)
            self.fails(self.export(path), f"{number}.db: {message}")

    def test_an_unknown_layout_is_one_clear_line(self):
        path = self.database(session(), ("tid", "name"), [])
        self.fails(self.export(path),
                   "old.db: unknown SQLite layout (a table metadata(key,value)"
                   " and one of spans with tid, name, start_ns and duration_ns"
                   " or end_ns are needed)")

    def test_a_damaged_database_is_one_line(self):
        path = self.database(session(spans=3000),
                             ("tid", "name", "start_ns", "end_ns"))
        raw = bytearray(path.read_bytes())
        for at in range(8192, len(raw), 5):
            raw[at] = 0xff
        path.write_bytes(raw)
        result = self.export(path)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("old.db: ", result.stderr)


if __name__ == "__main__":
    main()
