"""Reading traces, each figure beside its baseline, in one run on one file:

- `shp merge-dir` into a plain trace against cp and fsync of the same file;
- into a gz trace against inflating it once: by libdeflate from memory to memory,
  and by the programs igzip and gzip where they are; and against Python's gzip and
  json doing the whole merge;
- eight ranks on two cores against one;
- `shp export` of host files: bytes of JSONL a second, into a file, and into
  memory (/dev/shm), where the disk says nothing.

    python3 tests/bench/merge_bench.py [--small] [--gb 1.0] [--spans 100000]
        [--export 10000000] [--rounds 3]

The trace repeats the events of a small real one until it has the size. What is
compared takes turns, round by round; figures are medians of walls, peak memory
is the largest of any round. Run it as `chrt -f 30` on a machine that is busy.
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import trace_check
from host_files import HostSession
from shp_testing import BUILD, SHP, SOURCE, clean_environment

SAMPLE = (SOURCE / "tests" / "golden" / "traces" / "rocm" /
          "mi250_minitoy_train_ROCm6_2_kineto.json.gz")
INFLATE = BUILD / "tests" / "bench" / "inflate_bench"
RANKS = 8


def make_trace(path, size, pid=None):
    """The sample with its events repeated up to `size` bytes, and its facts.
    `pid` stands for the sample's own host process."""
    raw = trace_check.read_bytes(SAMPLE)
    facts = trace_check.Facts(trace_check.parse(raw))
    if pid is not None:
        raw = raw.replace(b'"pid": %d' % facts.hosts[0], b'"pid": %d' % pid)
        facts = trace_check.Facts(trace_check.parse(raw))
    begin = raw.index(b"[", raw.index(b'"traceEvents"')) + 1
    end = raw.index(b'],\n  "traceName"')
    body = raw[begin:end].rstrip()
    path.parent.mkdir(exist_ok=True)
    with open(path, "wb") as out:
        out.write(raw[:begin] + body)
        while out.tell() < size:
            out.write(b"," + body)
        out.write(b"\n  " + raw[end:])
    return facts


def compress(source, target):
    target.parent.mkdir(exist_ok=True)
    with open(source, "rb") as plain, gzip.open(target, "wb", 6) as out:
        shutil.copyfileobj(plain, out, 1 << 20)


def make_spans(path, facts, count):
    begin, end = (facts.base + t for t in facts.window)
    session = HostSession(facts.hosts[0], begin - 10**6, end + 10**6)
    length = (end - begin) * 4 / count
    for i in range(count // 4):
        at = int(begin + i * length)
        step = max(4, int(length))
        session.span("prepare", at, step // 4, args={"i": i})
        session.span("launch", at + step // 4, step // 4)
        session.span("wait", at + step // 2, step // 4)
        session.span("step", at, step - 1, args={"step": i, "batch": 32})
    return session.write(path)


def make_export(path, count):
    """A host file as shpd writes it: children before their parents, four
    threads in turn."""
    start = 10**12
    session = HostSession(4242, start, start + 40_000 * (count // 4 + 2),
                          offset=0)
    session.extra["written_spans"] = count
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="ascii", buffering=1 << 20) as out:
        out.write(json.dumps(session.metadata()) + "\n")
        span = 1
        for i in range(count // 4):
            at, tid = start + 1000 + i * 40_000, 4242 + i // 1000 % 4
            for name, begin, length, args in (
                    ("prepare", at, 8000, f'{{"i":{i}}}'),
                    ("launch", at + 9000, 8000, "{}"),
                    ("wait", at + 18000, 8000, "{}"),
                    ("step", at, 37000, f'{{"step":{i},"batch":32}}')):
                out.write(f'{{"type":"span","id":{span},"pid":4242,"tid":{tid},'
                          f'"name":"{name}","start_ns":{begin},'
                          f'"duration_ns":{length},"args":{args}}}\n')
                span += 1
    return path


class Timed:
    """Something that is done once a round."""

    def __init__(self, what, command, before=None, seconds=None):
        self.what, self.before, self.seconds = what, before, seconds
        self.command = [str(part) for part in command]
        self.walls, self.cpus, self.peak = [], [], 0

    def run(self):
        if self.before is not None:
            self.before()
        start = time.perf_counter()
        process = subprocess.Popen(self.command, env=clean_environment(),
                                   stdout=subprocess.PIPE)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        if status != 0:
            sys.exit(f"{' '.join(self.command)}: status {status}")
        self.walls.append(wall if self.seconds is None else self.seconds(out))
        self.cpus.append(usage.ru_utime + usage.ru_stime)
        self.peak = max(self.peak, usage.ru_maxrss)

    @property
    def wall(self):
        return statistics.median(self.walls)

    def report(self, note=""):
        print(f"{self.what:<42} {self.wall:8.3f} s wall "
              f"{statistics.median(self.cpus):7.3f} s cpu "
              f"{self.peak / 1024:6.0f} MiB  {note}", flush=True)


def by_turns(rounds, *all_timed):
    for _ in range(rounds):
        for timed in all_timed:
            timed.run()


def against(ours, *baselines, target):
    for baseline in baselines:
        baseline.report()
    ours.report("  ".join(
        f"= {ours.wall / baseline.wall:.2f} x {baseline.what.split(':')[0]}"
        for baseline in baselines) + f"   (target {target})")


PYTHON = """
import gzip, json, sys
trace, host, out = sys.argv[1:]
with gzip.open(trace) as stream:
    document = json.load(stream)
rows = [json.loads(line) for line in open(host, encoding="utf-8")]
meta, base = rows[0], document["baseTimeNanoseconds"]
offset = (meta["start_realtime_ns"] - meta["start_monotonic_ns"]
          - meta["clock_uncertainty_ns"] // 2)
for row in rows[1:]:
    document["traceEvents"].append({
        "ph": "X", "cat": "shp", "name": row["name"], "pid": row["pid"],
        "tid": 2**30 + row["tid"],
        "ts": (row["start_ns"] + offset - base) / 1000,
        "dur": row["duration_ns"] / 1000, "args": row["args"]})
with gzip.open(out, "wt", compresslevel=6) as stream:
    json.dump(document, stream)
"""

def fresh(path):
    """Away with what the last round left, and with its writing to the disk."""
    def call():
        shutil.rmtree(path, ignore_errors=True)
        if path.is_file():
            path.unlink()
        os.sync()
    return call


def merge(what, folder, traces, hosts="host", cores=None):
    pin = [] if cores is None else ["taskset", "-c", cores]
    out = folder / "out"
    return Timed(what, [*pin, SHP, "merge-dir", folder / hosts, "--output-dir",
                        out, "--torch-dir", folder / traces], fresh(out))


def bench_plain(folder, rounds):
    copy = folder / "copy"
    copied = Timed("cp: cp and fsync of the plain trace",
                   ["sh", "-c", f"cp {folder}/plain/trace.json {copy} && "
                                f"sync {copy}"], fresh(copy))
    ours = merge("shp merge-dir into the plain trace", folder, "plain")
    by_turns(rounds, copied, ours)
    against(ours, copied, target="1.3 x cp")
    fresh(copy)()


def bench_python(folder, spans):
    """On a trace that Python's json can hold."""
    facts = make_trace(folder / "small" / "trace.json", 50 * 10**6)
    host = make_spans(folder / "small_hosts" / "h.jsonl", facts, spans // 5)
    compress(folder / "small" / "trace.json",
             folder / "small_gz" / "trace.json.gz")
    python = Timed("Python's gzip and json into 50 MB of gz",
                   [sys.executable, "-c", PYTHON,
                    folder / "small_gz" / "trace.json.gz", host,
                    folder / "python.json.gz"])
    ours = merge("shp merge-dir into the same", folder, "small_gz",
                 "small_hosts")
    by_turns(1, python, ours)
    python.report()
    ours.report(f"= {python.wall / ours.wall:.1f} x as fast (target 3)")
    return python.wall / ours.wall


def bench_gz(folder, rounds):
    gz = folder / "gz" / "trace.json.gz"
    baselines = [Timed(f"{name}: {name} -dc of the gz trace",
                       ["sh", "-c", f"{name} -dc {gz} > /dev/null"])
                 for name in ("libdeflate-gzip", "igzip", "gzip")
                 if shutil.which(name)]
    if INFLATE.exists():
        baselines.insert(0, Timed("libdeflate: memory to memory",
                                  [INFLATE, gz],
                                  seconds=lambda out: float(out.split()[0])))
    ours = merge("shp merge-dir into the gz trace", folder, "gz")
    by_turns(rounds, *baselines, ours)
    against(ours, *baselines, target="1.3 x libdeflate or ISA-L")


def bench_ranks(folder, rounds, size, spans):
    for rank in range(RANKS):
        name = f"rank{rank}.json"
        facts = make_trace(folder / "ranks" / name, size // RANKS,
                           700_000 + rank)
        compress(folder / "ranks" / name, folder / "gz_ranks" / f"{name}.gz")
        make_spans(folder / "rank_hosts" / f"{rank}.jsonl", facts,
                   spans // RANKS)
    cores = sorted(os.sched_getaffinity(0))[:2]
    for kind in ("gz_ranks", "ranks"):
        one, two = (merge(f"{what}: {RANKS} {kind} on {what}", folder, kind,
                          "rank_hosts", ",".join(map(str, some)))
                    for what, some in (("one core", cores[:1]),
                                       ("two cores", cores)))
        by_turns(rounds, one, two)
        one.report()
        two.report(f"= {one.wall / two.wall:.2f} x as fast (target 1.8)")


def bench_export(folder, rounds, count):
    host = make_export(folder / "export" / "h.jsonl", count)
    megabytes = host.stat().st_size / 1e6
    places = [("into a file", folder / "e.json")]
    if os.access("/dev/shm", os.W_OK):
        places.append(("into memory",
                       pathlib.Path(f"/dev/shm/shp-bench-{os.getpid()}.json")))
    timed = [Timed(f"shp export of {count} spans {what}",
                   [SHP, "export", host, "-o", path], fresh(path))
             for what, path in places]
    copy = Timed("cp: cp and fsync of that host file",
                 ["sh", "-c", f"cp {host} {folder}/copy && "
                              f"sync {folder}/copy"], fresh(folder / "copy"))
    by_turns(rounds, copy, *timed)
    copy.report(f"= {megabytes / copy.wall:.0f} MB/s")
    for one, (_, path) in zip(timed, places):
        one.report(f"= {megabytes / one.wall:.0f} MB/s of JSONL read "
                   "(target 300)")
        path.unlink()


def bench(folder, options):
    size = int(options.gb * 1e9)
    plain = folder / "plain" / "trace.json"
    facts = make_trace(plain, size)
    make_spans(folder / "host" / "h.jsonl", facts, options.spans)
    compress(plain, folder / "gz" / "trace.json.gz")
    gz_bytes = (folder / "gz" / "trace.json.gz").stat().st_size
    print(f"trace {size / 1e6:.0f} MB, gz {gz_bytes / 1e6:.1f} MB, "
          f"{options.spans} spans; medians of {options.rounds}")
    bench_plain(folder, options.rounds)
    bench_gz(folder, options.rounds)
    ratio = bench_python(folder, options.spans)
    plain.unlink()
    bench_ranks(folder, options.rounds, size, options.spans)
    bench_export(folder, options.rounds, options.export)
    return ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--export", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.small:
        options.gb, options.spans = 0.05, 20_000
        options.export, options.rounds = 100_000, 1
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shp-bench-",
                                           dir=os.environ.get("TMPDIR",
                                                              "/var/tmp")))
    try:
        ratio = bench(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if ratio < 3:
        sys.exit("gz merge is not 3 times faster than Python")


if __name__ == "__main__":
    main()
