"""What the daemon takes: spans a second of its CPU, its memory, no loss.

Two threads record steadily (60 s; --small: 2 s) while a daemon of the bench's
own drains; its CPU seconds and peak memory are the kernel's, from /proc. Then
200 threads of 1,000 spans each with defaults, and the start of /bin/true with
and without the preload. Each figure prints its baseline from the same run.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shp_testing import (BUILD, LIBRARY, Daemon, clean_environment,
                         closed_paths, traced_environment)

SMALL = "--small" in sys.argv
SECONDS = 2 if SMALL else 60
RATE = 250_000  # spans a second a thread
THREADS_PROGRAM = """
import sys, threading
import service_host_profiling as shp
shp.start(sys.argv[1])
def work():
    for _ in range(1000):
        shp.span_end(shp.span_start("t"))
threads = [threading.Thread(target=work) for _ in range(200)]
for t in threads: t.start()
for t in threads: t.join()
shp.stop()
"""


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024


def own_mib(pid):
    """Peak of what is the daemon's own: the rings are its clients' memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return sum(int(re.search(rf"{name}:\s+(\d+) kB", status).group(1))
               for name in ("RssAnon", "RssFile")) / 1024


def metadata_of(path):
    with open(path, "rb") as stream:
        return json.loads(stream.readline())


def sustained(folder):
    with Daemon(folder) as daemon:
        pid = daemon.worker()
        before = cpu_seconds(pid)
        done = subprocess.run(
            [BUILD / "tests/bench/rate_load", folder / "load", "2", str(RATE),
             str(SECONDS)], env=traced_environment(daemon), check=True,
            stdout=subprocess.PIPE, text=True, timeout=SECONDS * 5 + 60)
        spent = cpu_seconds(pid) - before
        peak, own = peak_mib(pid), own_mib(pid)
    [path] = closed_paths(folder / "load")
    metadata = metadata_of(path)
    spans = int(done.stdout)
    assert metadata["written_spans"] == spans, (metadata, spans)
    assert metadata["dropped_spans"] == 0, metadata
    path.unlink()
    rate = spans / spent if spent else float("inf")
    print(f"sustained: {spans} spans in {SECONDS} s from 2 threads, none lost; "
          f"{rate / 1e6:.2f} M spans a second of daemon CPU ({spent:.2f} s); "
          f"daemon RSS {peak:.1f} MiB at most, {own:.1f} MiB its own")
    return rate >= 2e6 and peak <= 64


def threads(folder):
    script = folder / "threads.py"
    script.write_text(THREADS_PROGRAM)
    with Daemon(folder) as daemon:
        subprocess.run([sys.executable, script, folder / "threads"],
                       env=traced_environment(daemon), check=True, timeout=120)
    [path] = closed_paths(folder / "threads")
    written = metadata_of(path)["written_spans"]
    print(f"200 threads x 1,000 spans: {written} of 200000 in the file")
    return written == 200_000


def start_up():
    plain, preloaded = [], []
    for _ in range(50 if SMALL else 500):
        for environment, times in ((clean_environment(), plain),
                                   (clean_environment(LD_PRELOAD=LIBRARY),
                                    preloaded)):
            begin = time.perf_counter()
            subprocess.run(["/bin/true"], env=environment, check=True)
            times.append((time.perf_counter() - begin) * 1e3)
    without, with_it = map(statistics.median, (plain, preloaded))
    print(f"/bin/true: {without:.3f} ms without, {with_it:.3f} ms with the "
          f"preload: {with_it - without:+.3f} ms")
    return with_it - without <= 0.3


def main():
    folder = Path(tempfile.mkdtemp(prefix="shp-bench-"))
    try:
        good = [sustained(folder), threads(folder), start_up()]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not all(good) and not SMALL:
        print("missed: a target of README.md's figures")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
