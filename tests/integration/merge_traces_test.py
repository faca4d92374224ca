"""Every trace of the collection through `shp merge-dir`.

One row a file (support/trace_table.py): what becomes of it and why. An accepted
one's kind, base, processes, rank and window are in the row, and what the report
says and what Python's json finds are both compared with it. The merged file is
read by Python's json too: the spans stand where they were put, every
other byte is as it was, none overlaps another in part, and a second run changes
nothing. The files lie beside the checkout (SHP_TRACES); a few small ones are in
golden/traces, so that a checkout by itself tests the main ones.
"""

import json
import os
import pathlib
import shutil

import trace_check
from host_files import HostSession
from shp_testing import Case, SHP, SOURCE, clean_environment, main, run
from trace_table import Merged, TABLE

TRACES = pathlib.Path(os.environ.get(
    "SHP_TRACES", SOURCE.parent / "shared" / "traces"))
GOLDEN = SOURCE / "tests" / "golden" / "traces"


def clock_offset(capture):
    """REALTIME minus MONOTONIC of the host, where an Ascend capture tells."""
    for path in capture.glob("profiler_info*.json"):
        end = json.loads(path.read_text())["end_info"]
        return end["collectionTimeEnd"] - end["MonotonicTimeEnd"]
    return None


def to_grain(value, grain):
    return (value + grain // 2) // grain * grain


class Placed:
    """Spans at known places of one trace, and what must come of them."""

    def __init__(self, facts, pid, offset):
        base = facts.base or 0
        begin, end = (base + t for t in facts.window)
        self.base, self.grain, self.pid = base, facts.grain, pid
        self.tids = facts.tids[str(pid)]
        self.slices, self.pairs = [], []
        length = end - begin
        self.session = HostSession(pid, begin - 10**9, end + 10**9,
                                   facts.host_name, offset)
        at = [begin + length * i // 20 for i in range(21)]
        half = max(1, length // 40)
        self.put("outer", at[2], at[12] - at[2], args={"n": 1, "s": "ä\n"})
        self.put("inner", at[3], at[6] - at[3])
        self.put("leaf", at[3], at[4] - at[3], args={"deep": [{"x": None}]})
        self.put("same start", at[6], at[12] - at[6])
        self.put("overlapping", at[11], at[14] - at[11], pair=length > 1000)
        self.put("after it", at[15], half)
        self.put("enters", begin - 5000, 5000 + half, tid=77)
        self.put("leaves", end - half, half + 5000, tid=78)
        self.put("no time", at[10], 0, tid=79)
        self.session.span("before", begin - 9000, 8000)
        self.session.span("behind", end + 1000, 10)

    def put(self, name, start, duration, tid=None, args=None, pair=False):
        self.session.span(name, start, duration, tid, args)
        row = (name, to_grain(start, self.grain) - self.base,
               to_grain(start + duration, self.grain) - self.base, args or {})
        (self.pairs if pair else self.slices).append(row)

    def check(self, test, events):
        test.assertTrue(all(e["cat"] == trace_check.OURS for e in events))
        found = sorted(
            (e["name"], trace_check.ns(e["ts"]),
             trace_check.ns(e["ts"]) + trace_check.ns(e["dur"]), e["args"])
            for e in events if e["ph"] == "X")
        test.assertEqual(found, sorted(self.slices))
        self.check_pairs(test, events)
        test.assertEqual(trace_check.partial_overlaps(events), [])
        real = self.tids
        for tid in {e["tid"] for e in events}:
            test.assertTrue(1 <= tid < 2**32 and tid != self.pid)
            test.assertNotIn(str(tid), real)
            names = [e["args"]["name"] for e in events if e["ph"] == "M"
                     and e["name"] == "thread_name" and e["tid"] == tid]
            test.assertEqual(len(names), 1, names)
            test.assertTrue(names[0].startswith("host spans: "))
        test.assertEqual({str(e["pid"]) for e in events}, {str(self.pid)})

    def check_pairs(self, test, events):
        begins = {e["id2"]["local"]: e for e in events if e["ph"] == "b"}
        ends = {e["id2"]["local"]: e for e in events if e["ph"] == "e"}
        test.assertEqual(set(begins), set(ends))
        found = sorted((b["name"], trace_check.ns(b["ts"]),
                        trace_check.ns(ends[i]["ts"]), b["args"])
                       for i, b in begins.items())
        test.assertEqual(found, sorted(self.pairs))


class Traces(Case):
    needs = (SHP,)

    def merge(self, *arguments):
        result = run([SHP, "merge-dir", "--json", *arguments],
                     env=clean_environment(), seconds=300)
        return result, json.loads(result.stdout) if result.stdout else None

    def check_facts(self, row, facts, report):
        """The row, what Python's json finds, and what our report says."""
        self.assertEqual((row.base, row.hosts, row.window),
                         (facts.base, facts.hosts, facts.window))
        base = row.base or 0
        self.assertEqual(
            (report["kind"], report["base_ns"], report["host_pids"],
             report["rank"], report["window_ns"]),
            (row.kind, row.base, row.hosts, row.rank,
             [base + t for t in row.window]))

    def check_merged(self, name, report, before, placed):
        self.assertEqual(report["outcome"], "merged", report)
        merged = self.out / name
        after = trace_check.read_bytes(merged)
        self.assertEqual(merged.read_bytes()[:2] == b"\x1f\x8b",
                         name.endswith(".gz"))
        events = trace_check.inserted(before, after)
        placed.check(self, events)
        self.assertEqual(report["spans"],
                         len(placed.slices) + len(placed.pairs))
        trace_check.parse(after)
        # Once more, in place: nothing changes.
        first = merged.read_bytes()
        result, again = self.merge(self.folder / "host", "--torch-dir",
                                   self.out)
        self.assert_ok(result)
        self.assertEqual(again["traces"][0]["replaced_events"], len(events))
        self.assertEqual(merged.read_bytes(), first)

    def check_file(self, root, name, expected):
        torch = self.folder / "torch"
        source = root / name
        keep = source.parent
        if "_ascend_pt/" in name:
            keep = source.parent.parent
        shutil.copytree(keep, torch)
        shutil.copytree(torch, self.folder / "untouched")
        relative = str(source.relative_to(keep))
        host = self.folder / "host"
        placed = facts = before = None
        if isinstance(expected, Merged):
            before = trace_check.read_bytes(source)
            facts = trace_check.Facts(trace_check.parse(before))
            placed = Placed(facts, facts.hosts[0], clock_offset(keep))
            placed.session.write(host / "one.jsonl")
        else:
            HostSession(1, 10**18, 10**18 + 10).write(host / "one.jsonl")
        result, report = self.merge(host, "--torch-dir", torch,
                                    "--output-dir", self.out)
        rows = {t["trace"]: t for t in report["traces"]}
        row = rows[relative]
        if isinstance(expected, Merged):
            self.check_facts(expected, facts, row)
            self.check_merged(relative, row, before, placed)
        else:
            self.assertNotEqual(row["outcome"], "merged")
            self.assertEqual(row["reason"], expected)
            self.assertEqual(result.returncode, 1)
        for path in (self.folder / "untouched").rglob("*"):
            if path.is_file():
                other = torch / path.relative_to(self.folder / "untouched")
                self.assertEqual(path.read_bytes(), other.read_bytes())

    def run_table(self, root, names):
        for name in names:
            with self.subTest(name):
                for folder in ("torch", "untouched", "host", "out"):
                    shutil.rmtree(self.folder / folder, ignore_errors=True)
                self.check_file(root, name, TABLE[name])

    def test_every_file_of_the_collection(self):
        if not TRACES.is_dir():
            self.skipTest(f"{TRACES} is not here (set SHP_TRACES)")
        there = {str(p.relative_to(TRACES)) for p in TRACES.rglob("*")
                 if p.is_file() and p.name != "README.md"}
        self.assertEqual(there, set(TABLE), "a file has no row, or a row none")
        self.run_table(TRACES, sorted(TABLE))

    def test_the_small_ones_that_the_tree_holds(self):
        names = sorted(str(p.relative_to(GOLDEN)) for p in GOLDEN.rglob("*")
                       if p.is_file() and p.name != "README.md")
        self.assertTrue(names)
        self.run_table(GOLDEN, names)


if __name__ == "__main__":
    main()
