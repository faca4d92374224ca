"""Every trace of the collection through `shp merge-dir`.

One row a file: what becomes of it and why. What the report says of an accepted
one (base, processes, rank, window) is compared with what Python's json finds, and
the merged file is read by it too: the spans stand where they were put, every
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

TRACES = pathlib.Path(os.environ.get(
    "SHP_TRACES", SOURCE.parent / "shared" / "traces"))
GOLDEN = SOURCE / "tests" / "golden" / "traces"

MERGED = None
NOT_TRACE = "is JSON without traceEvents"
NO_HOST = "has no process of the host in it"

# Path: the reason why it is not merged, or MERGED.
TABLE = {
    "ascend/level0/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json":
        MERGED,
    "ascend/level0/rank0_ascend_pt/profiler_info_0.json": NOT_TRACE,
    "ascend/level0/rank0_ascend_pt/profiler_metadata.json": NOT_TRACE,
    "ascend/level0/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json":
        MERGED,
    "ascend/level0/rank1_ascend_pt/profiler_info_1.json": NOT_TRACE,
    "ascend/level0/rank1_ascend_pt/profiler_metadata.json": NOT_TRACE,
    "ascend/old-decimal-pids/trace_view.json": MERGED,
    "ascend/tiny-heatmap/trace_view.json": NO_HOST,
    "ascend/tiny-meta-only/trace_view_tiny.json": NO_HOST,
    "ascend-meta/2023-no-start_info/profiler_info_0.json": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/end_info": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/host_start.log":
        "is a JSON array of other things than events",
    "ascend-meta/PROF_msconfig/host/info.json": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/sample.json": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/start_info": NOT_TRACE,
    "ascend-meta/torch_npu-2.7.1/profiler_info_0.json": NOT_TRACE,
    "ascend-meta/torch_npu-2.7.1/profiler_info_1.json": NOT_TRACE,
    "ascend-meta/torch_npu-2.7.1/profiler_metadata.json": NOT_TRACE,
    "broken/kineto-issue-105-inf.json": NO_HOST,
    "broken/kineto-pr-1459-unescaped-quote.json":
        "byte 103: no comma after an event's value (unescaped quote?)",
    "broken/pytorch-issue-121219-replacement-chars.json": MERGED,
    "broken/pytorch-issue-33961-legacy-exporter.json":
        "byte 306: event's key does not start with a quote",
    "broken/pytorch-issue-98432-windows-backslash.json": MERGED,
    "decoys/benchmark_simple_add_et.json.gz": NOT_TRACE,
    "decoys/cpu_op_map_trace1.json": NOT_TRACE,
    "kineto-1.8.1/resnet50_profiler_api_num_workers_4.worker0.pt.trace"
    ".json.gz": MERGED,
    "kineto-1.9/gpu_metrics_input.json": MERGED,
    "kineto-abs-us/backward_thread.json": MERGED,
    "kineto-abs-us/benchmark_result_924719_1679055439_trace.json.gz": MERGED,
    "kineto-abs-us/benchmark_simple_add_trace.json.gz": MERGED,
    "kineto-abs-us/event_sync_trace.json.gz": MERGED,
    "kineto-abs-us/large/df_index_resolver.json.gz": MERGED,
    "kineto-abs-us/sampled/sampled_rank-0.json.gz": MERGED,
    "kineto-abs-us/sampled/sampled_rank-1.json.gz": MERGED,
    "kineto-abs-us-frac/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": MERGED,
    "kineto-base-first/b200_eager_trace.json.gz": MERGED,
    "kineto-base-last/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": MERGED,
    "kineto-base-last/triton_example.json.gz": MERGED,
    "rewritten/h100_bert-small-uncased__1016001.json.gz": MERGED,
    "rocm/mi210_gpu_only_trace.json.gz": MERGED,
    "rocm/mi250_minitoy_train_ROCm6_2_kineto.json.gz": MERGED,
    "rocm/normalization_layer_test.json.gz": MERGED,
    "sglang/capture_traces/execution_details.json":
        'is a JSON array whose objects have no "ph"',
    "sglang/sglang_Qwen3-8B_decode.json.gz": MERGED,
    "vllm/graph_execution.json.gz": MERGED,
}
TABLE.update({
    f"multirank-dlrm8/worker{n}_step_12.16941282015{ms}.pt.trace.json": MERGED
    for n, ms in enumerate((45, 56, 54, 57, 47, 49, 53, 53))})


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

    def check(self, test, events, facts):
        test.assertTrue(all(e["cat"] == trace_check.OURS for e in events))
        found = sorted(
            (e["name"], trace_check.ns(e["ts"]),
             trace_check.ns(e["ts"]) + trace_check.ns(e["dur"]), e["args"])
            for e in events if e["ph"] == "X")
        test.assertEqual(found, sorted(self.slices))
        self.check_pairs(test, events)
        test.assertEqual(trace_check.partial_overlaps(events), [])
        real = facts.tids[str(self.pid)]
        for tid in {e["tid"] for e in events}:
            test.assertTrue(1 <= tid < 2**32 and tid != self.pid)
            test.assertNotIn(str(tid), real)
            names = [e["args"]["name"] for e in events if e["ph"] == "M"
                     and e["name"] == "thread_name" and e["tid"] == tid]
            test.assertEqual(len(names), 1, names)
            test.assertTrue(names[0].startswith("host spans: "))
        test.assertEqual({str(e["pid"]) for e in events}, {str(self.pid)})

    def check_pairs(self, test, events):
        begins = {e["id"]: e for e in events if e["ph"] == "b"}
        ends = {e["id"]: e for e in events if e["ph"] == "e"}
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

    def check_merged(self, name, report, before, facts, placed):
        self.assertEqual(report["outcome"], "merged", report)
        self.assertEqual(report["base_ns"], facts.base)
        self.assertEqual(report["host_pids"], facts.hosts)
        base = facts.base or 0
        self.assertEqual(report["window_ns"],
                         [base + t for t in facts.window])
        if not report["kind"] == "ascend":
            self.assertEqual(report["rank"], facts.rank)
        merged = self.out / name
        after = trace_check.read_bytes(merged)
        self.assertEqual(merged.read_bytes()[:2] == b"\x1f\x8b",
                         name.endswith(".gz"))
        events = trace_check.inserted(before, after)
        placed.check(self, events, facts)
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

    def check_file(self, root, name, reason):
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
        if reason is MERGED:
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
        if reason is MERGED:
            self.check_merged(relative, row, before, facts, placed)
        else:
            self.assertNotEqual(row["outcome"], "merged")
            self.assertIn(reason, row["reason"])
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
