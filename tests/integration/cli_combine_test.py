"""`shp merge-dir --combine OUT`: all ranks and all host processes in one trace.

Two ranks whose traces have different bases, the same GPU numbers and the same flow
ids; a tokenizer that no trace is of. Every expected time is worked out here.
"""

import json

from merge_case import BASE, ERROR, Merge, session, trace
from shp_testing import main

OTHER = BASE - 7_889_238 * 10**9


def gpu(ts, flow, pid=7):
    return [{"ph": "M", "name": "process_labels", "pid": 0, "tid": 0,
             "args": {"labels": "GPU 0"}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
             "ts": ts, "dur": 5},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "pid": pid, "tid": 7,
             "ts": ts, "id": flow},
            {"ph": "f", "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7,
             "ts": ts, "id": flow, "bp": "e"}]


class Combine(Merge):
    def setUp(self):
        super().setUp()
        self.put("rank0.json.gz", trace(
            more=gpu(1500, 1), top={"distributedInfo": {"rank": 0}}))
        # The same wall clock time, written from the base before.
        late = trace(8, begin=1000 + 7_889_238 * 10**6,
                     end=9000 + 7_889_238 * 10**6, base=OTHER,
                     more=gpu(1600 + 7_889_238 * 10**6, 1, 8),
                     top={"distributedInfo": {"rank": 1}})
        self.put("rank1.json", late)
        self.put_host("0.jsonl", session())
        self.put_host("1.jsonl", session(8, spans=((2100, 10), (2105, 10))))
        self.put_host("t.jsonl", session(55, spans=((3000, 1),)))
        self.target = self.folder / "all.json"

    def combined(self):
        return json.loads(self.target.read_bytes())

    def test_all_of_it_is_on_one_timeline(self):
        before = [p.read_bytes() for p in sorted(self.torch.iterdir())]
        result = self.merge("--combine", self.target)
        self.expect(result, 0)
        self.assertIn(f"{self.target}: all of them on one timeline\n",
                      result.stdout)
        document = self.combined()
        self.assertEqual(document["baseTimeNanoseconds"], BASE)
        events = document["traceEvents"]
        names = {}
        for e in events:
            if e["name"] == "process_name":
                self.assertNotIn(e["pid"], names)
                names[e["pid"]] = e["args"]["name"]
        self.assertEqual(sorted(names.values()), [
            "@ host-a (55)", "rank 0: GPU 0", "rank 0: host (7)",
            "rank 1: GPU 0", "rank 1: host (8)"])
        found = sorted((names[e["pid"]], e["name"], round(e["ts"], 3))
                       for e in events if e["ph"] in "Xb")
        self.assertEqual(found, [
            ("@ host-a (55)", "step", 3000), ("rank 0: GPU 0", "gemm", 1500),
            ("rank 0: host (7)", "aten::mm", 1000),
            ("rank 0: host (7)", "step", 2000),
            ("rank 1: GPU 0", "gemm", 1600),
            ("rank 1: host (8)", "aten::mm", 1000),
            ("rank 1: host (8)", "step", 2100),
            ("rank 1: host (8)", "step", 2105)])
        self.assertEqual([p.read_bytes() for p in
                          sorted(self.torch.iterdir())], before)

    def test_flows_tie_only_events_of_their_own_trace(self):
        self.expect(self.merge("--combine", self.target), 0)
        ends = {}
        for e in self.combined()["traceEvents"]:
            if e["ph"] in "sf":
                ends.setdefault(e["id"], []).append((e["ph"], e["ts"]))
        self.assertEqual(sorted(ends.values()),
                         [[("s", 1500), ("f", 1500)],
                          [("s", 1600), ("f", 1600)]])

    def test_its_own_result_is_not_merged_again(self):
        self.target = self.torch / "all.json"
        self.expect(self.merge("--combine", self.target), 0)
        first = self.target.read_bytes()
        self.expect(self.merge("--combine", self.target), 0)
        self.assertEqual(self.target.read_bytes(), first)

    def test_it_excludes_writing_elsewhere(self):
        result = self.merge("--combine", self.target, "--output-dir", self.out)
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith(ERROR))


if __name__ == "__main__":
    main()
