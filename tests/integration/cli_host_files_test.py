"""`shp merge-dir` from every kind of host file: the predecessor's closed JSONL of
schema 3 and its historical SQLite files, checked row by row and count by count.
"""

import json
import shutil
import sqlite3

from host_files import HostSession, write_database
from merge_case import BASE, ERROR, Merge, session, trace
from shp_testing import SOURCE, main


class HostFiles(Merge):
    def test_sqlite_of_both_layouts_beside_jsonl(self):
        paths = [self.put(f"{pid}.json", trace(pid)) for pid in (7, 8, 9)]
        write_database(self.host / "7.db", session())
        write_database(self.host / "8.sqlite", session(8, spans=((3000, 20),)),
                 ("tid", "name", "start_ns", "end_ns", "attrs"))
        self.put_host("9.jsonl", session(9))
        self.expect(self.merge(), 0, None, "")
        self.assertEqual([self.spans_of(p) for p in paths],
                         [[(7, 2000, 10)], [(8, 3000, 20)], [(9, 2000, 10)]])

    def test_other_databases_in_the_directory_are_no_host_files(self):
        path = self.put("a.json", trace())
        with sqlite3.connect(self.host / "profile.db") as db:
            db.execute("CREATE TABLE kernels(start INTEGER, end INTEGER)")
        db.close()
        self.put_host()
        self.expect(self.merge(), 0, None, "")
        self.assertEqual(self.spans_of(path), [(7, 2000, 10)])

    def test_a_damaged_database_is_not_passed_over_in_silence(self):
        path = self.put("a.json", trace())
        bad = write_database(self.host / "bad.db", session(55))
        raw = bytearray(bad.read_bytes())
        raw[100:300] = b"\xff" * 200
        bad.write_bytes(raw)
        self.put_host()
        self.expect(self.merge(), 1, None, f"{ERROR}bad.db: SQLite: database "
                    "disk image is malformed\n")
        self.assertEqual(self.spans_of(path), [(7, 2000, 10)])

    def test_what_is_wrong_is_told_by_row_and_count(self):
        made = session(spans=((2000, 10), (3000, 10)))
        outside = [dict(made.rows[0]), dict(made.rows[1], start_ns=1)]
        for meta, rows, message in (
                ({"written_spans": 3}, None, "holds 2 spans, its metadata "
                 "says 3 (cut off or edited)"),
                ({}, [made.rows[0], dict(made.rows[1], tid="x")],
                 "row 2: tid is not an integer"),
                ({}, outside, "row 2: "),
                ({"pid": "seven"}, None, "pid")):
            with self.subTest(message):
                path = self.put("a.json", trace())
                before = path.read_bytes()
                bad = self.host / "bad.db"
                bad.unlink(missing_ok=True)
                write_database(bad, made, meta=meta, rows=rows)
                self.put_host("good.jsonl", session(55))
                result = self.merge()
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{self.host}/bad.db: ", result.stderr)
                self.assertIn(message, result.stderr)
                self.assertEqual(path.read_bytes(), before)

    def test_a_file_that_the_predecessor_made(self):
        golden = SOURCE / "tests" / "golden" / "predecessor.jsonl"
        rows = [json.loads(line) for line in
                golden.read_text().splitlines()]
        meta, spans = rows[0], rows[1:]
        self.assertEqual(meta["schema_version"], 3)
        shutil.copy(golden, self.host / "old.jsonl")
        pid = meta["pid"]
        begin = (meta["start_realtime_ns"] - BASE) / 1000
        path = self.put("a.json", trace(pid, begin - 1000, begin + 10**9))
        self.expect(self.merge(), 0, None, "")
        events = [e for e in json.loads(path.read_bytes())["traceEvents"]
                  if e.get("cat") == "shp" and e["ph"] in "Xb"]
        self.assertEqual(sorted(e["name"] for e in events),
                         sorted(s["name"] for s in spans))
        # Its clock is one offset: REALTIME at the middle of the bracket.
        offset = (meta["start_realtime_ns"] - meta["start_monotonic_ns"]
                  - meta["clock_uncertainty_ns"] // 2)
        want = sorted(s["start_ns"] + offset - BASE for s in spans)
        for event, ns in zip(sorted(events, key=lambda e: e["ts"]), want):
            # The stop's bracket may move it by what both brackets allow.
            self.assertLessEqual(abs(event["ts"] * 1000 - ns), 2000)


class LargeSessions(Merge):
    def test_one_thousand_threads_each_have_their_row(self):
        made = HostSession(7, BASE, BASE + 10_000_000)
        for tid in range(100, 1100):
            made.span("s", BASE + 2_000_000, 1000, tid=tid)
        path = self.put("a.json", trace())
        made.write(self.host / "one.jsonl")
        self.expect(self.merge(), 0, None, "")
        ours = [e for e in json.loads(path.read_bytes())["traceEvents"]
                if e.get("cat") == "shp"]
        self.assertEqual(len({e["tid"] for e in ours}), 1000)
        self.assertEqual(
            sorted(e["args"]["name"] for e in ours
                   if e["name"] == "thread_name"),
            sorted(f"host spans: thread {t}" for t in range(100, 1100)))


if __name__ == "__main__":
    main()
