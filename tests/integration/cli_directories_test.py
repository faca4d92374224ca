"""`shp merge-dir` on directories as frameworks leave them: SGLang, vLLM, Torch's
tensorboard_trace_handler, dynolog, torch_npu. Names and kinds of files are those
of the frameworks' sources; what is in them is as small as can be.
"""

import gzip
import json
import os
import sqlite3

from merge_case import BASE, Merge, session, trace
from shp_testing import main

PROTON = {"displayTimeUnit": "us", "traceEvents": [
    {"ph": "M", "pid": 0, "tid": 0, "name": "process_name",
     "args": {"name": "Trace"}},
    {"name": "k", "cat": "kernel", "ph": "X", "pid": 0, "tid": 1, "ts": 0.5,
     "dur": 2}]}
RPD = (b'[ {}\n,{"name": "process_name", "ph": "M", "pid":"0","args":'
       b'{"name":"GPU0"}}\n,{"pid":"7","tid":"7","name":"hipLaunch","ts":'
       b'"123.456","dur":"1.5","ph":"X","args":{"desc":""}}\n]\n')
GRAPH = {"schema": "1.0.1", "pid": 7, "nodes": [{"id": 1, "name": "[pytorch]"}]}


def named_pids(pid):
    """What SGLang's merger makes of a rank's trace."""
    return trace(pid).replace(b'"pid": %d' % pid, b'"pid": "[TP00] %d"' % pid)


class Directories(Merge):
    def put_database(self, name):
        path = self.torch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE rocpd_op(id INTEGER, start INTEGER)")
        database.close()

    def expect_reasons(self, result, reasons):
        lines = dict(line.split(": skipped: ", 1)
                     for line in result.stdout.splitlines()
                     if ": skipped: " in line)
        self.assertEqual(lines, reasons)

    def test_sglang_with_its_stages_and_everything_beside_them(self):
        profile = "1759255878.904894"
        traces = {}
        for rank in (0, 1):
            for stage, begin in (("EXTEND", 1000), ("DECODE", 5000)):
                traces[rank, stage] = self.put(
                    f"{profile}-TP-{rank}-{stage}.trace.json.gz",
                    trace(251 + rank, begin, begin + 2000,
                          top={"distributedInfo": {"rank": rank}}))
        start_up = self.put(
            "graph_capture_profile/cuda_graph_capture-TP-0.json.gz",
            trace(251, 100, 200))
        self.put(f"merged-{profile}.trace.json.gz", named_pids(251))
        self.put(f"{profile}-TP-0-memory-EXTEND.pickle", b"\x80\x04N.")
        self.put(f"rpd-{profile}-TP-0.trace.json.gz", RPD)
        self.put_database("trace.rpd")
        self.put("server_args.json", b'{"model_path": "m", "tp_size": 2}')
        for rank in (0, 1):
            # The second crosses the end of EXTEND, the third lies between the
            # stages, the fourth reaches from one into the other.
            self.put_host(f"{rank}.jsonl", session(251 + rank, spans=(
                (1500, 10), (2900, 200), (3500, 10), (2999, 2002),
                (6000 + rank, 1))))
        result = self.merge()
        self.expect(result, 0, None, "")
        self.expect_reasons(result, {
            f"merged-{profile}.trace.json.gz":
                "has names for pids (merged already by another tool)",
            f"{profile}-TP-0-memory-EXTEND.pickle": "is a pickle",
            f"rpd-{profile}-TP-0.trace.json.gz":
                "is a conversion of an rpd file",
            "trace.rpd": "is a database",
            "server_args.json": "is JSON without traceEvents"})
        for rank in (0, 1):
            pid = 251 + rank
            self.assertEqual(
                self.placed(traces[rank, "EXTEND"]),
                [(pid, 1500, 1510), (pid, 2900, 3100), (pid, 2999, 5001)])
            self.assertEqual(
                self.placed(traces[rank, "DECODE"]),
                [(pid, 2999, 5001), (pid, 6000 + rank, 6001 + rank)])
        # Start-up is a window like any other; no span was in it.
        self.assertEqual(self.placed(start_up), [])

    def placed(self, path):
        """All spans of ours, async ones too, as (pid, start, end)."""
        events = [e for e in json.loads(gzip.decompress(path.read_bytes()))
                  ["traceEvents"] if e.get("cat") == "shp"]
        ends = {e["id2"]["local"]: e["ts"] for e in events if e["ph"] == "e"}
        return sorted((e["pid"], e["ts"],
                       ends[e["id2"]["local"]] if e["ph"] == "b"
                       else e["ts"] + e["dur"])
                      for e in events if e["ph"] in "Xb")

    def test_vllm_with_its_front_end(self):
        worker = self.put("dp0_rank-0.1759255878904894.pt.trace.json.gz",
                          trace(851, top={"distributedInfo": {"rank": 0}}))
        front = self.put("node_55.async_llm.17592558.pt.trace.json.gz",
                         trace(55))
        self.put("profiler_out_0.txt", b"-----  Self CPU\n")
        self.put("proton_rank0.chrome_trace", json.dumps(PROTON).encode())
        self.put("proton_rank0.hatchet", b'[{"children": [], "frame": {}}]')
        self.put("execution_details.json", b'[{"graph_name": "g"}]')
        self.put("et_rank0.json.gz", json.dumps(GRAPH).encode())
        self.put_host("w.jsonl", session(851))
        self.put_host("f.jsonl", session(55, spans=((3000, 5),)))
        result = self.merge()
        self.expect(result, 0, None, "")
        self.expect_reasons(result, {
            "profiler_out_0.txt": "is not JSON",
            "proton_rank0.chrome_trace":
                "has no process of the host in it",
            "proton_rank0.hatchet":
                'is a JSON array whose objects have no "ph"',
            "execution_details.json":
                'is a JSON array whose objects have no "ph"',
            "et_rank0.json.gz": "is JSON without traceEvents"})
        self.assertEqual(self.spans_of(worker), [(851, 2000, 10)])
        self.assertEqual(self.spans_of(front), [(55, 3000, 5)])

    def test_the_tensorboard_handler_with_repeats_and_memory(self):
        # After a fork the name still holds the parent's pid: content counts.
        repeats = [self.put(f"node_7.{1000 + i}.pt.trace.json",
                            trace(7, 1000 + 3000 * i, 2000 + 3000 * i))
                   for i in range(3)]
        forked = self.put("node_7.2000.pt.trace.json", trace(8))
        self.put("memory.raw.json.gz", b"[[1, 2, 3], [4, 5, 6]]")
        self.put("memory.html", b"<html></html>")
        self.put("stacks.txt", b"a;b;c 5\n")
        self.put("op_stats.csv", b"a,b\n1,2\n")
        self.put("libkineto.json.tmp", trace(7)[:-50])
        on_demand = self.put("libkineto_activities_9.json", trace(9))
        native = self.put("monitor.pftrace", b"\x0a\x0b\x08")
        for pid in (8, 9):
            self.put_host(f"{pid}.jsonl", session(pid))
        self.put_host("7.jsonl", session(spans=(
            (1500, 1), (4500, 2), (7500, 3))))
        result = self.merge()
        self.expect(result, 0, None, "")
        self.expect_reasons(result, {
            "memory.raw.json.gz":
                "is a JSON array of other things than events",
            "memory.html": "is a page", "stacks.txt": "is not JSON",
            "op_stats.csv": "is a table (CSV)",
            "libkineto.json.tmp": "is a writer's unfinished file",
            "monitor.pftrace": "is a trace in Perfetto's own format"})
        for i, path in enumerate(repeats):
            self.assertEqual(self.spans_of(path),
                             [(7, 1500 + 3000 * i, 1 + i)])
        for pid, path in ((8, forked), (9, on_demand)):
            self.assertEqual(self.spans_of(path), [(pid, 2000, 10)])
        self.assertEqual(native.read_bytes(), b"\x0a\x0b\x08")

    def test_traces_and_host_files_in_one_directory(self):
        """SHP_FOLLOW=torch leaves them so."""
        self.host = self.torch
        path = self.put("a.json", trace())
        self.put_host("host_7.jsonl")
        (self.torch / "host_8.jsonl.pending").write_text("{}\n")
        result = self.merge()
        self.expect(result, 0, None, "")
        self.expect_reasons(result, {
            "host_8.jsonl.pending":
                "is a host file that is still being written"})
        self.assertEqual(self.spans_of(path), [(7, 2000, 10)])

    def test_results_below_the_torch_directory_are_no_input(self):
        self.put("a.json", trace())
        self.put_host()
        out = self.torch / "merged"
        for _ in range(2):
            self.expect(self.merge("--output-dir", out), 0)
            self.assertEqual(os.listdir(out), ["a.json"])
        self.assertEqual(self.spans_of(out / "a.json"), [(7, 2000, 10)])


class TwoProcessesInOneTrace(Merge):
    def test_each_gets_the_spans_of_its_own_host_file(self):
        second = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1",
                  "pid": 9, "tid": 9, "ts": 1000, "dur": 8000}
        path = self.put("a.json", trace(more=[second]))
        self.put_host()
        self.put_host("9.jsonl", session(9, spans=((4000, 20),)))
        self.expect(self.merge(), 0, "a.json: 2 spans from 2 host files, clock "
                    "realtime, \u00b1200 ns\n", "")
        self.assertEqual(self.spans_of(path), [(7, 2000, 10), (9, 4000, 20)])
        first = path.read_bytes()
        self.expect(self.merge(), 0)
        self.assertEqual(path.read_bytes(), first)
        # One alone is enough.
        (self.host / "one.jsonl").unlink()
        self.expect(self.merge(), 0)
        self.assertEqual(self.spans_of(path), [(9, 4000, 20)])

    def test_a_pid_that_is_host_and_gpu_is_host(self):
        """In containers a worker's pid may be a GPU's number."""
        gpu = [{"ph": "M", "name": "process_labels", "pid": 3, "tid": 0,
                "args": {"labels": "GPU 3"}},
               {"ph": "X", "cat": "kernel", "name": "k", "pid": 3, "tid": 7,
                "ts": 1500, "dur": 10}]
        path = self.put("a.json", trace(3, more=gpu))
        self.put_host(made=session(3))
        self.expect(self.merge(), 0)
        self.assertEqual(self.spans_of(path), [(3, 2000, 10)])

    def test_odd_pids_and_tids_keep_their_form_and_their_rows(self):
        events = [
            {"ph": "X", "cat": "Operator", "name": "a", "pid": "7",
             "tid": "3004819264", "ts": 1000, "dur": 8000},
            {"ph": "X", "cat": "python_function", "name": "b", "pid": "7",
             "tid": 0, "ts": 1000, "dur": 8000},
            {"ph": "X", "cat": "overhead", "name": "c", "pid": -1, "tid": -1,
             "ts": 1000, "dur": 8000},
            # A tid where our row would stand.
            {"ph": "X", "cat": "Operator", "name": "d", "pid": "7",
             "tid": 2**30 + 7, "ts": 1000, "dur": 8000}]
        path = self.put("a.json", json.dumps({
            "traceEvents": events, "baseTimeNanoseconds": BASE}).encode())
        self.put_host()
        self.expect(self.merge(), 0)
        ours = [e for e in json.loads(path.read_bytes())["traceEvents"]
                if e.get("cat") == "shp"]
        self.assertEqual({e["pid"] for e in ours}, {"7"})
        self.assertEqual({e["tid"] for e in ours}, {2**30 + 8})


if __name__ == "__main__":
    main()
