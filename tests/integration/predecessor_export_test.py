"""The predecessor's own host files through `shp export`.

One is made on the spot by the predecessor's package, where that is at hand; one
that it made lies in golden/predecessor.jsonl, so that this also runs without.
"""

import decimal
import gzip
import json
import pathlib
import sys

from shp_testing import (Case, SHP, SOURCE, clean_environment, closed_paths,
                         main, predecessor, run)

GOLDEN = SOURCE / "tests" / "golden" / "predecessor.jsonl"

MAKER = """
import sys, threading, time
import service_host_profiling as shp
assert shp.is_enabled()
shp.start(sys.argv[1], session_id="made by 0.5.0")
outer = shp.span_start("outer", {"text": 'a"b\\\\c\\u4e2d', "n": [1, 2.5, None]})
for i in range(100):
    inner = shp.span_start("inner", {"i": i})
    shp.span_end(inner)
def work():
    for _ in range(50):
        shp.span_end(shp.span_start("thread", lambda: {"late": True}))
thread = threading.Thread(target=work)
thread.start()
thread.join()
shp.span_start("open")
shp.span_end(outer)
shp.stop()
"""


def load(path):
    raw = pathlib.Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return json.loads(raw, parse_float=decimal.Decimal)


class PredecessorExport(Case):
    needs = (SHP,)

    def check_export(self, host_file, suffix):
        output = self.folder / f"out{suffix}"
        result = run([SHP, "export", host_file, "-o", output],
                     env=clean_environment())
        self.assert_ok(result)
        rows = [json.loads(line) for line in
                pathlib.Path(host_file).read_bytes().splitlines()]
        metadata, spans = rows[0], rows[1:]
        self.assertEqual(metadata["written_spans"], len(spans))
        events = [e for e in load(output)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(events), len(spans))
        self.compare(spans, events, metadata["clock_uncertainty_ns"])

    def compare(self, spans, events, uncertainty_ns):
        """Order, names and args exactly; times from the first span on within
        the uncertainty of the two calibrations that place them."""
        def ns(value):
            return round(decimal.Decimal(value) * 1000)
        spans = sorted(spans, key=lambda s: (s["start_ns"], s["id"]))
        events = sorted(events, key=lambda e: ns(e["ts"]))
        base, origin = spans[0]["start_ns"], ns(events[0]["ts"])
        for span, event in zip(spans, events):
            self.assertEqual(
                (span["name"], span["pid"], span["args"]),
                (event["name"], event["pid"],
                 json.loads(json.dumps(event.get("args", {}), default=float))))
            for ours, its in ((span["start_ns"] - base, ns(event["ts"]) - origin),
                              (span["duration_ns"], ns(event["dur"]))):
                self.assertLessEqual(abs(ours - its), uncertainty_ns, span)

    def test_a_file_that_it_made_long_ago(self):
        self.check_export(GOLDEN, ".json")

    def test_a_file_that_it_makes_now(self):
        environment = clean_environment(PYTHONPATH=predecessor(),
                                        HOST_SERVICE_PROFILER_ENABLE=1)
        self.assert_ok(run([sys.executable, self.script(MAKER), self.out],
                           env=environment))
        [path] = closed_paths(self.out)
        for suffix in (".json", ".json.gz"):
            with self.subTest(suffix):
                self.check_export(path, suffix)


if __name__ == "__main__":
    main()
