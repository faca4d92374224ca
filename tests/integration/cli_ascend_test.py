"""`shp merge-dir` on captures of Ascend's torch_npu, by the arithmetic of its own
metadata. MONOTONIC_RAW and MONOTONIC are seconds apart here, as they are on a host
that NTP has disciplined for long; the collection's captures have them equal.

  trace_ns(m) = m + (RAW - MONOTONIC) + D
"""

import json

from merge_case import ERROR, Merge
from host_files import HostSession
from shp_testing import main

SECOND = 10**9
REAL = 1_736_405_443 * SECOND       # CLOCK_REALTIME where the capture begins
MONO = 168_723 * SECOND             # CLOCK_MONOTONIC there
AHEAD = 3 * SECOND                  # RAW minus MONOTONIC
RAW = MONO + AHEAD


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


def npu_trace(pid=7, begin=REAL, end=REAL + SECOND, device=True, quoted=True):
    stamp = us if quoted else (lambda ns: ns / 1000)
    rows = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0,
             "args": {"name": "Python"}},
            {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0,
             "args": {"labels": "CPU"}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": pid,
             "tid": pid, "ts": stamp(begin), "dur": (end - begin) / 1000}]
    if device:
        rows += [{"ph": "M", "name": "process_name", "pid": pid << 10,
                  "tid": 0, "args": {"name": "CANN"}},
                 # CANN is labelled CPU too, and is no host row.
                 {"ph": "M", "name": "process_labels", "pid": pid << 10,
                  "tid": 0, "args": {"labels": "CPU"}},
                 {"ph": "X", "name": "launch", "pid": pid << 10, "tid": 1,
                  "ts": stamp(begin), "dur": 5.0}]
    return json.dumps(rows).encode()


class Ascend(Merge):
    capture = "node_7_20250109064403000_ascend_pt"

    def put_capture(self, data=None, npu=True, prof=None, info=True,
                    end_offset=REAL - MONO):
        """`prof`: REALTIME ns and RAW ns of PROF_*/host/start_info."""
        path = self.put(f"{self.capture}/ASCEND_PROFILER_OUTPUT/"
                        "trace_view.json", data or npu_trace(device=npu))
        activities = ["ProfilerActivity.CPU"]
        activities += ["ProfilerActivity.NPU"] if npu else []
        if info:
            end = MONO + 2 * SECOND
            self.put(f"{self.capture}/profiler_info_5.json", json.dumps({
                "config": {"common_config": {"activities": activities}},
                "start_info": {"syscnt_enable": True, "freq": 100,
                               "start_cnt": 1, "start_monotonic": RAW},
                "end_info": {"collectionTimeEnd": end + end_offset,
                             "MonotonicTimeEnd": end},
                "rank_id": "5"}).encode())
        if prof:
            self.put(f"{self.capture}/PROF_1_2_ABC/host/start_info",
                     json.dumps({
                         "collectionTimeBegin": str(prof[0] // 1000),
                         "clockMonotonicRaw": str(prof[1])}).encode())
            self.put(f"{self.capture}/PROF_1_2_ABC/host/info.json", json.dumps(
                {"hostname": "host-a", "pid": "7",
                 "CPU": [{"Frequency": "100.000000"}]}).encode())
        return path

    def put_session(self, raw=True, pid=7):
        """A span that starts 100 ms into the capture and lasts 10 us."""
        made = HostSession(pid, REAL - SECOND, REAL + 5 * SECOND,
                           offset=REAL - MONO)
        if raw:
            made.extra = {"start_monotonic_raw_ns": RAW - SECOND,
                          "stop_monotonic_raw_ns": RAW + 5 * SECOND}
        made.span("step", REAL + 100_000_000, 10_000)
        return made.write(self.host / f"{pid}.jsonl")

    def ours(self, path):
        return [(e["pid"], e["ts"], e["dur"]) for e in
                json.loads(path.read_bytes())
                if e.get("cat") == "shp" and e["ph"] == "X"]

    def test_with_prof_data_a_span_stands_by_raw_and_its_offset(self):
        # PROF began 40 ms before the capture; D is what it says and nothing
        # else: 2 ms more than the wall clock and RAW are apart otherwise.
        path = self.put_capture(prof=(REAL - 38_000_000, RAW - 40_000_000))
        self.put_session()
        result = self.merge()
        self.expect(result, 0, None, "")
        self.assertIn("clock ascend ", result.stdout)
        # m + 3 s + (REAL - RAW + 2 ms), as a string, like the others.
        self.assertEqual(self.ours(path),
                         [(7, us(REAL + 102_000_000), 10.0)])

    def test_of_the_cpu_alone_the_end_pair_counts_and_is_displaced(self):
        # D = REAL - MONOTONIC is added to RAW: 3 s past the wall clock, and
        # so are the trace's own events.
        path = self.put_capture(npu_trace(
            begin=REAL + AHEAD, end=REAL + AHEAD + SECOND, device=False),
            npu=False)
        self.put_session()
        self.expect(self.merge(), 0, None, "")
        self.assertEqual(self.ours(path),
                         [(7, us(REAL + AHEAD + 100_000_000), 10.0)])

    def test_of_the_cpu_alone_without_raw_samples_it_is_refused(self):
        path = self.put_capture(npu=False)
        before = path.read_bytes()
        self.put_session(raw=False)
        name = f"{self.capture}/ASCEND_PROFILER_OUTPUT/trace_view.json"
        self.expect(self.merge(), 1, None,
                    f"{ERROR}{name}: is an Ascend trace of the CPU alone, in "
                    "MONOTONIC_RAW, which 7.jsonl has no sample of; give "
                    "--clock-offset-ns or --clock-anchors-ns\n")
        self.assertEqual(path.read_bytes(), before)
        self.expect(self.merge("--clock-offset-ns", str(REAL - MONO)), 0)
        self.assertEqual(self.ours(path),
                         [(7, us(REAL + 100_000_000), 10.0)])

    def test_a_loose_trace_of_the_cpu_alone_is_refused(self):
        self.put("trace_view.json", npu_trace(device=False))
        self.put_session()
        self.expect(self.merge(), 1, None,
                    f"{ERROR}trace_view.json: is an Ascend trace of the CPU "
                    "alone without profiler_info; give --clock-offset-ns or "
                    "--clock-anchors-ns\n")

    def test_a_loose_trace_of_the_device_goes_by_the_wall_clock(self):
        path = self.put("trace_view.json", npu_trace())
        self.put_session(raw=False)
        result = self.merge()
        self.expect(result, 0, None, "")
        self.assertEqual(self.ours(path),
                         [(7, us(REAL + 100_000_000), 10.0)])
        # RAW may have run 500 ppm apart over the second, and 1 us: the report
        # says so (half the bracket and half the grain on top).
        self.assertIn("\u00b1501.3 \u00b5s", result.stdout)

    def test_another_boot_is_refused(self):
        self.put_capture(end_offset=REAL - MONO + 2 * SECOND)
        self.put_session()
        result = self.merge()
        self.assertEqual(result.returncode, 1)
        self.assertIn("give --clock-offset-ns or --clock-anchors-ns",
                      result.stderr)

    def test_the_rank_comes_from_the_metadata(self):
        self.put_capture()
        self.put_session()
        report = json.loads(self.merge("--json").stdout)
        row = next(t for t in report["traces"] if t["outcome"] == "merged")
        self.assertEqual((row["rank"], row["kind"], row["host_pids"]),
                         (5, "ascend", [7]))

    def test_relative_numeric_times_have_no_base(self):
        """As torch_npu's pending change will write them."""
        self.put("trace_view.json", npu_trace(begin=0 + 5000, end=9_000_000,
                                              quoted=False))
        self.put_session()
        self.expect(self.merge(), 1, None,
                    f"{ERROR}trace_view.json: its times are relative and it "
                    "has no baseTimeNanoseconds; give --clock-offset-ns or "
                    "--clock-anchors-ns\n")


if __name__ == "__main__":
    main()
