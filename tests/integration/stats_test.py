"""`shp stats`: the numbers of closed files, against sums made here in Python."""

import collections
import json
import math
import random
import sys

from host_files import HostSession, write_database
from shp_testing import (Case, SHP, clean_environment, main, published, run,
                         traced_environment)

BEGIN = 1_700_000_000_000_000_000
SECOND = 1_000_000_000

RECORDS = """
import threading
import service_host_profiling as shp
def work(n):
    for i in range(n):
        outer = shp.span_start("outer")
        shp.span_end(shp.span_start("inner"))
        shp.span_end(outer)
        shp.counter("queue", i)
    shp.instant("done")
threads = [threading.Thread(target=work, args=(100 * (k + 1),))
           for k in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def random_tree(rng, begin, end, depth=0):
    """Spans within [begin, end) that nest, as (name, begin, end), a span behind
    those within it. No two are alike."""
    at = begin
    while depth < 4 and at + 1000 < end and rng.random() < 0.8:
        first = rng.randint(at, end - 1)
        last = rng.randint(first + 1, end)
        yield from random_tree(rng, first + 1, last, depth + 1)
        yield rng.choice("abcde"), first, last
        at = last


def random_session(seed, pid):
    rng = random.Random(seed)
    made = HostSession(pid, BEGIN, BEGIN + SECOND)
    for tid in (pid, pid + 1, pid + 2):
        trees = random_tree(rng, BEGIN, BEGIN + SECOND)
        for name, first, last in trees:
            made.span(name, first, last - first, tid)
    return made


def union(spans):
    """How long it is that one of these lasts."""
    total, reached = 0, 0
    for first, last in sorted(spans):
        total += max(0, last - max(first, reached))
        reached = max(reached, last)
    return total


def own_time(span, others):
    """Of the spans within this one, the outermost ones' time is not its own."""
    first, last = span
    within = [o for o in others
              if o != span and o[0] >= first and o[1] <= last]
    return last - first - union(within)


def expected(sessions):
    """Each name's numbers by the plainest way: lists, and pairs compared."""
    durations = collections.defaultdict(list)
    own = collections.Counter()
    share = collections.Counter()
    for made in sessions:
        length = made.metadata()["stop_monotonic_ns"] - \
            made.metadata()["start_monotonic_ns"]
        threads = collections.defaultdict(list)
        for row in made.rows:
            threads[row["tid"]].append(
                (row["name"], row["start_ns"],
                 row["start_ns"] + row["duration_ns"]))
        for spans in threads.values():
            pairs = [s[1:] for s in spans]
            for name, first, last in spans:
                durations[name].append(last - first)
                own[name] += own_time((first, last), pairs)
            for name in {s[0] for s in spans}:
                covered = union([s[1:] for s in spans if s[0] == name])
                share[name] = max(share[name], covered / length)
    return durations, own, share


def nearest_rank(values, part):
    return sorted(values)[max(math.ceil(part * len(values)), 1) - 1]


class Stats(Case):
    def stats(self, *words):
        return run([SHP, "stats", *words], env=clean_environment())

    def answer(self, *words):
        result = self.stats("--json", *words)
        self.assert_ok(result)
        return json.loads(result.stdout)

    def assert_numbers(self, answer, sessions):
        durations, own, share = expected(sessions)
        rows = {row["name"]: row for row in answer["names"]}
        self.assertEqual(set(rows), set(durations))
        for name, values in durations.items():
            row = rows[name]
            self.assertEqual(row["spans"], len(values))
            self.assertEqual(row["total_ns"], sum(values))
            self.assertEqual(row["min_ns"], min(values))
            self.assertEqual(row["max_ns"], max(values))
            self.assertEqual(row["self_ns"], own[name])
            self.assertAlmostEqual(row["thread_share"], share[name], 5)
            for key, part in ("p50_ns", 0.5), ("p99_ns", 0.99):
                exact = nearest_rank(values, part)
                self.assertLessEqual(abs(row[key] - exact), 0.02 * exact + 1)

    def test_numbers_of_random_files_are_those_of_plain_sums(self):
        """Seen to fail with EndedSpans that forgot to pop what it covered."""
        for seed in range(20):
            sessions = [random_session(seed, 100), random_session(seed + 99, 200)]
            folder = self.folder / f"seed{seed}"
            for made in sessions:
                made.write(folder / f"{made.pid}.jsonl")
            with self.subTest(seed=seed):
                answer = self.answer(folder)
                self.assertEqual(len(answer["files"]), 2)
                self.assert_numbers(answer, sessions)

    def test_a_recorded_run(self):
        daemon = self.daemon()
        self.assert_ok(run(
            [sys.executable, self.script(RECORDS)],
            env=traced_environment(daemon, SHP_OUTPUT_DIR=self.out)))
        published(self.out)
        answer = self.answer(self.out)
        rows = {row["name"]: row for row in answer["names"]}
        self.assertEqual(rows["outer"]["spans"], 600)
        self.assertEqual(rows["outer"]["threads"], 3)
        self.assertEqual(
            rows["outer"]["self_ns"] + rows["inner"]["total_ns"],
            rows["outer"]["total_ns"])
        marks = {row["name"]: row for row in answer["marks"]}
        self.assertEqual(marks["done"], {"name": "done", "count": 3})
        self.assertEqual(marks["queue"]["count"], 600)
        self.assertEqual(marks["queue"]["max"], 299)
        self.assertEqual(marks["queue"]["min"], 0)
        self.assertEqual(marks["queue"]["sum"], sum(
            sum(range(100 * (k + 1))) for k in range(3)))

    def test_the_table_says_the_same(self):
        made = HostSession(7, BEGIN, BEGIN + 2 * SECOND, width=0)
        for i in range(1500):
            made.span("step", BEGIN + i * 1_000_000, 250_000)
        made.span("load", BEGIN, 1_900_000_000, tid=8)
        made.extra["argv"] = ["/usr/bin/python3", "serve.py"]
        made.extra["dropped_spans"] = 12
        made.extra["dropped"] = {"ring_full": 12}
        result = self.stats(made.write(self.folder / "x.jsonl"))
        self.assert_ok(result)
        first, _, load, step = result.stdout.splitlines()
        self.assertIn("pid 7 python3 serve.py, 2.00 s, 1,501 spans", first)
        self.assertIn("12", first.split("spans, ")[1])
        self.assertEqual(load.split(), [
            "1", "0.5", "1.90", "s", "1.90", "s", "1.90", "s", "1.90", "s",
            "1.90", "s", "95.0%", "load"])
        self.assertEqual(step.split(), [
            "1,500", "750", "250", "us", "250", "us", "250", "us", "375",
            "ms", "375", "ms", "18.8%", "step"])

    def test_sorts_by_any_column_and_says_how_many_are_not_shown(self):
        made = HostSession(7, BEGIN, BEGIN + SECOND)
        made.span("long", BEGIN, 500)
        for i in range(9):
            made.span("often", BEGIN + 1000 + 20 * i, 10)
        made.span("mid", BEGIN + 2000, 300)
        path = made.write(self.folder / "x.jsonl")
        for column, order in {
                "total": ["long", "mid", "often"],
                "count": ["often", "long", "mid"],
                "max": ["long", "mid", "often"],
                "name": ["long", "mid", "often"]}.items():
            with self.subTest(column):
                answer = self.answer("--sort", column, path)
                self.assertEqual([r["name"] for r in answer["names"]], order)
        lines = self.stats("--rows", "1", path).stdout.splitlines()
        self.assertEqual(lines[-1].split(), ["2", "more", "names"])

    def test_by_file(self):
        for pid in 100, 200:
            made = HostSession(pid, BEGIN, BEGIN + SECOND)
            for i in range(pid):
                made.span("f", BEGIN + i, 1)
            made.write(self.out / f"{pid}.jsonl")
        answers = self.answer("--by-file", self.out)
        self.assertEqual([a["names"][0]["spans"] for a in answers], [100, 200])
        heads = [line for line in self.stats("--by-file", self.out)
                 .stdout.splitlines() if "pid " in line]
        self.assertEqual(len(heads), 2)

    def test_a_historical_database(self):
        made = random_session(3, 100)
        write_database(self.out / "old.db", made)
        self.assert_numbers(self.answer(self.out / "old.db"), [made])

    def test_names_cannot_drive_the_terminal(self):
        made = HostSession(7, BEGIN, BEGIN + SECOND)
        made.span("a\x1b[2Jb\x9bc", BEGIN, 5)
        made.extra["argv"] = ["\x1b]0;title\x07"]
        made.write(self.folder / "x.jsonl")
        out = self.stats(self.folder / "x.jsonl").stdout
        self.assertIn("a?[2Jb?c", out)
        self.assertFalse({c for c in out if c < " " and c != "\n"})

    def test_bad_input_is_one_line_with_the_place(self):
        made = HostSession(7, BEGIN, BEGIN + SECOND)
        made.span("f", BEGIN, 5)
        path = made.write(self.folder / "x.jsonl")
        path.write_text(path.read_text().replace('"tid":7', '"tid":"x"'))
        for words, reason in (([path], "x.jsonl"),
                              ([self.folder / "none"], "none"),
                              ([self.folder / "empty"], "empty")):
            (self.folder / "empty").mkdir(exist_ok=True)
            with self.subTest(reason):
                result = self.stats(*words)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stdout, "")
                self.assertEqual(len(result.stderr.splitlines()), 1)
                self.assertIn(reason, result.stderr)
        self.assertEqual(self.stats().returncode, 2)
        self.assertEqual(self.stats("--sort", "x", path).returncode, 2)


if __name__ == "__main__":
    main()
