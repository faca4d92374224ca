"""Real Torch, two processes: do the host spans stand where they were?

The program (support/programs/ddp_training.py) starts and ends a host span and
a record_function together, so each pair is one moment seen by two recorders:
ours in CLOCK_MONOTONIC, placed by `shp merge-dir`, and Kineto's, which converts
the time stamp counter to CLOCK_REALTIME by its own fit. After the merge the
distance of a pair can be

  - what truly passed between the two stamps: the program brackets both with
    CLOCK_MONOTONIC, so at most that bracket's width, measured for each pair;
  - our clock error: half the calibration's bracket at either end of the
    session, which the host file reports as clock_uncertainty_ns;
  - Kineto's: a fit through 1001 pairs of reads at either end of the profile; a
    pair costs about 50 ns and their median is taken, so well below 1 us.

So for the median pair: distance <= median bracket + uncertainty + 1 us. Since
which of the two is outside alternates, the sign rules bound the clock error
alone, too: it lies between the least distances of the two orders. Both are
printed.
"""

import collections
import decimal
import gzip
import json
import os
import statistics
import sys

from shp_testing import (Case, HostFile, SHP, SOURCE, clean_environment,
                         closed_paths, main, run, torch_python,
                         traced_environment)

PROGRAM = SOURCE / "tests" / "support" / "programs" / "ddp_training.py"
STEPS = 60
KINETO_NS = 1000


def load(path):
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
        return json.load(stream, parse_float=decimal.Decimal)


def key(event):
    return json.dumps(event, sort_keys=True, default=str)


def start_end_ns(event):
    start = round(decimal.Decimal(event["ts"]) * 1000)
    return start, start + round(decimal.Decimal(event["dur"]) * 1000)


def added_events(before, after):
    """The events of `after` that `before` does not have."""
    known = collections.Counter(key(e) for e in before["traceEvents"])
    added = []
    for event in after["traceEvents"]:
        if known[key(event)]:
            known[key(event)] -= 1
        else:
            added.append(event)
    assert not +known, "events of the original are gone"
    return added


class TorchMerge(Case):
    def setUp(self):
        super().setUp()
        self.python = torch_python()
        self.root = self.folder / "capture"

    def test_under_shp_run_each_rank_gets_its_spans_in_place(self):
        os.chmod(self.folder, 0o700)
        result = run([SHP, "run", "-o", self.out, "--", self.python, PROGRAM,
                      self.root, STEPS], seconds=240,
                     env=clean_environment(XDG_RUNTIME_DIR=self.folder))
        self.assert_ok(result)
        self.merge_and_check("shp run")

    def test_under_a_plain_preload_each_rank_gets_its_spans_in_place(self):
        daemon = self.daemon()
        result = run([self.python, PROGRAM, self.root, STEPS], seconds=240,
                     env=traced_environment(daemon))
        self.assert_ok(result)
        self.merge_and_check("LD_PRELOAD")

    def merge_and_check(self, how):
        torch_dir = self.root / "torch"
        before = {p.name: load(p) for p in torch_dir.iterdir()}
        self.assertEqual(len(before), 2)
        files = {f.metadata["pid"]: f for f in
                 map(HostFile, closed_paths(self.root / "host"))}
        self.assertEqual(len(files), 2)
        result = run([SHP, "merge-dir", self.root / "host", "--torch-dir",
                      torch_dir], env=clean_environment())
        self.assert_ok(result)
        for rank, name in enumerate(sorted(before)):
            after = load(torch_dir / name)
            added = added_events(before[name], after)
            self.check_rank(how, rank, before[name], added, files)

    def check_rank(self, how, rank, before, added, files):
        self.assertEqual(before["distributedInfo"]["rank"], rank)
        spans = [e for e in added if e["ph"] == "X"]
        pids = {e["pid"] for e in spans}
        self.assertEqual(len(pids), 1)
        file = files[pids.pop()]
        annotations = [e for e in before["traceEvents"]
                       if e.get("cat") == "user_annotation"]
        self.assertIn(file.metadata["pid"], {e["pid"] for e in annotations})
        counts = collections.Counter(e["name"] for e in spans)
        self.assertEqual(counts, dict.fromkeys(
            ("fetch", "forward", "loss", "backward", "optimize"), STEPS))
        brackets = json.loads(
            (self.root / f"brackets.{rank}.json").read_text())
        self.compare(f"{how}, rank {rank}", spans, annotations, brackets,
                     file.metadata["clock_uncertainty_ns"])

    def compare(self, label, spans, annotations, brackets, uncertainty_ns):
        """Twins pair up by name, in order."""
        distances, widths, errors = [], [], {True: [], False: []}
        for name in ("fetch", "forward", "optimize"):
            ours = sorted(start_end_ns(e) for e in spans if e["name"] == name)
            twins = sorted(start_end_ns(e) for e in annotations
                           if e["name"] == name)
            measured = [b for b in brackets if b["name"] == name]
            self.assertEqual(len(ours), len(twins))
            self.assertEqual(len(ours), len(measured))
            for (s, e), (ts, te), bracket in zip(ours, twins, measured):
                distances += [abs(s - ts), abs(e - te)]
                widths += [bracket["start_ns"], bracket["end_ns"]]
                # Outside: ours starts first and ends last, if clocks agree.
                errors[bracket["outside"]] += [ts - s, e - te]
        median = statistics.median(distances)
        bound = statistics.median(widths) + uncertainty_ns + KINETO_NS
        low, high = min(errors[True]), max(errors[False])
        print(f"{label}: {len(distances)} pairs: median {median / 1000:.1f} us,"
              f" maximum {max(distances) / 1000:.1f} us; bound on the median "
              f"{bound / 1000:.1f} us; an outer span begins "
              f"{low / 1000:.2f} us before its twin at least, an inner one "
              f"{-high / 1000:.2f} us after", file=sys.stderr)
        self.assertLessEqual(median, bound)
        # A clock error would put an outer span's edge inside its twin.
        self.assertGreaterEqual(low, -uncertainty_ns - KINETO_NS)
        self.assertLessEqual(high, uncertainty_ns + KINETO_NS)


if __name__ == "__main__":
    main()
