"""Putting host spans into a gz trace: `shp merge-dir` against Python's gzip and
json doing the same, in one run on one file. Then a plain file against cp and fsync,
and the export of host files.

    python3 tests/bench/merge_bench.py [--small] [--gb 1.0] [--spans 100000]

The trace repeats the events of a small real one until it has the size. Target: gz
at least 3 times faster than Python. Times are walls, the best of three; `cpu` is
user plus system time of the program.
"""

import argparse
import gzip
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import trace_check
from host_files import HostSession
from shp_testing import SHP, SOURCE, clean_environment

SAMPLE = (SOURCE / "tests" / "golden" / "traces" / "rocm" /
          "mi250_minitoy_train_ROCm6_2_kineto.json.gz")


def make_trace(path, size):
    """The sample with its events repeated up to `size` bytes, and its facts."""
    raw = trace_check.read_bytes(SAMPLE)
    begin = raw.index(b"[", raw.index(b'"traceEvents"')) + 1
    end = raw.index(b'],\n  "traceName"')
    body = raw[begin:end].rstrip()
    with open(path, "wb") as out:
        out.write(raw[:begin] + body)
        while out.tell() < size:
            out.write(b"," + body)
        out.write(b"\n  " + raw[end:])
    return trace_check.Facts(trace_check.parse(raw))


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


def best(call, repeat):
    walls, cpus = [], []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        call()
        walls.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime
                    - before.ru_stime)
    return min(walls), min(cpus)


def shp(*arguments):
    subprocess.run([str(SHP), *map(str, arguments)], check=True,
                   env=clean_environment(), stdout=subprocess.DEVNULL)


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


def copy_and_sync(source, target):
    shutil.copyfile(source, target)
    with open(target, "rb+") as stream:
        os.fsync(stream.fileno())


def report(what, wall, cpu, against=None):
    ratio = f"   {against[0]} / this = {against[1] / wall:.2f}" if against \
        else ""
    print(f"{what:<44} {wall:8.3f} s wall {cpu:8.3f} s cpu{ratio}",
          flush=True)


def bench(folder, options):
    size = int(options.gb * 1e9)
    repeat = 1 if options.small else 3
    plain = folder / "plain" / "trace.json"
    gz = folder / "gz" / "trace.json.gz"
    plain.parent.mkdir()
    gz.parent.mkdir()
    facts = make_trace(plain, size)
    host = make_spans(folder / "host" / "h.jsonl", facts, options.spans)
    with open(plain, "rb") as source, gzip.open(gz, "wb", 6) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    print(f"trace {size / 1e6:.0f} MB, gz {gz.stat().st_size / 1e6:.1f} MB, "
          f"{options.spans} spans, host file "
          f"{host.stat().st_size / 1e6:.1f} MB")
    out = folder / "out"
    arguments = ["merge-dir", folder / "host", "--output-dir", out,
                 "--torch-dir"]
    inflate = best(lambda: subprocess.run(
        ["gzip", "-dc", str(gz)], check=True, stdout=subprocess.DEVNULL),
        repeat)
    report("gzip -dc of the gz trace", *inflate)
    python = best(lambda: subprocess.run(
        [sys.executable, "-c", PYTHON, str(gz), str(host),
         str(folder / "python.json.gz")], check=True), 1)
    report("Python gzip+json into the gz trace", *python)
    ours = best(lambda: shp(*arguments, gz.parent), repeat)
    report("shp merge-dir into the gz trace", *ours, ("Python", python[0]))
    copied = best(lambda: copy_and_sync(plain, folder / "copy"), repeat)
    report("cp and fsync of the plain trace", *copied)
    merged = best(lambda: shp(*arguments, plain.parent), repeat)
    report("shp merge-dir into the plain trace", *merged, ("cp", copied[0]))
    exported = best(lambda: shp("export", host, "-o", folder / "e.json"),
                    repeat)
    report("shp export of the host file", *exported)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"export reads {host.stat().st_size / 1e6 / exported[0]:.0f} MB/s; "
          f"largest child {peak / 1024:.0f} MiB (Python's included)")
    ratio = python[0] / ours[0]
    print(f"gz: {ratio:.1f} times faster than Python (target 3)")
    return ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--spans", type=int, default=100_000)
    options = parser.parse_args()
    if options.small:
        options.gb, options.spans = 0.05, 20_000
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shp-bench-"))
    try:
        ratio = bench(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if ratio < 3:
        sys.exit("gz merge is not 3 times faster than Python")


if __name__ == "__main__":
    main()
