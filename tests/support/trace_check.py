"""A second opinion on traces: Python's json and none of our own code.

load() takes what viewers take (invalid UTF-8, inf, stray backslashes). Facts are
what a reader would say of the file; inserted() is what a merge put in, checked
to be one piece with every other byte as it was.
"""

import gzip
import json
import re
from fractions import Fraction

HOST_CATEGORIES = {
    "cpu_op", "python_function", "user_annotation", "cuda_runtime",
    "cuda_driver", "xpu_runtime", "xpu_driver", "cpu_instant_event",
    "Operator", "Runtime"}
OURS = "shp"


def read_bytes(path):
    with open(path, "rb") as stream:
        raw = stream.read()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def parse(raw):
    text = raw.decode("utf-8", "surrogateescape")
    text = re.sub(r'\\(?!["\\/bfnrtu])', r"\\\\", text)
    text = re.sub(r"([:,\[]\s*)(-?)inf\b", r"\1\2Infinity", text)
    return json.loads(text, strict=False, parse_float=Fraction,
                      parse_constant=lambda name: None)


def events_of(trace):
    return trace if isinstance(trace, list) else trace["traceEvents"]


def ns(value):
    """Microseconds, a number or a string, as exact nanoseconds cut to whole."""
    return int(Fraction(value) * 1000)


class Facts:
    """What decides about a trace, worked out by other code than ours."""

    def __init__(self, trace):
        top = {} if isinstance(trace, list) else trace
        events = events_of(trace)
        self.base = top.get("baseTimeNanoseconds")
        self.host_name = top.get("host_name", "host-a")
        self.rank = top.get("distributedInfo", {}).get("rank")
        self.pids = {}
        labels = {}
        names = {}
        self.tids = {}
        starts, ends = [], []
        mark = [None, None]
        for e in events:
            pid = e.get("pid")
            self.tids.setdefault(str(pid), set()).add(str(e.get("tid")))
            if e["ph"] == "M":
                if e["name"] == "process_labels":
                    labels.setdefault(pid, set()).add(e["args"]["labels"])
                if e["name"] == "process_name":
                    names[pid] = e["args"]["name"]
                continue
            if e.get("cat") in HOST_CATEGORIES:
                self.pids[pid] = self.pids.get(pid, 0) + 1
            if e["ph"] not in "stf" and ns(e["ts"]) != 0:
                starts.append((pid, ns(e["ts"])))
                ends.append((pid, ns(e["ts"]) + max(0, ns(e.get("dur") or 0))))
            if e["ph"] == "i" and e["name"].startswith("Iteration Start"):
                mark[0] = min(mark[0] or ns(e["ts"]), ns(e["ts"]))
            if e["ph"] == "i" and e["name"] == "Record Window End":
                mark[1] = max(mark[1] or ns(e["ts"]), ns(e["ts"]))
        if isinstance(trace, list):
            self.hosts = [p for p in names if names[p] == "Python"]
        else:
            wanted = set(self.pids) | {p for p in labels if "CPU" in labels[p]}
            self.hosts = sorted((int(p) for p in wanted if int(p) > 0),
                                key=lambda p: -self.pids.get(p, 0))
        own = [t for p, t in starts if p in self.hosts]
        own_ends = [t for p, t in ends if p in self.hosts]
        if None not in mark and mark[0] <= mark[1]:
            self.window = tuple(mark)
        elif own:
            self.window = (min(own), max(own_ends))
        else:
            self.window = (min((t for _, t in starts), default=0),
                           max((t for _, t in ends), default=0))
        # A double holds µs to the ns below 2^43, to 250 ns from 2^50 on.
        self.grain = 1 if max((t for _, t in ends), default=0) < 2**43 * 1000 \
            else 250


def inserted(before, after):
    """The events that `after` has and `before` has not, as one piece of text.

    Raises AssertionError when anything else differs."""
    head = 0
    limit = min(len(before), len(after))
    while head < limit and before[head] == after[head]:
        head += 1
    tail = 0
    while (tail < limit - head
           and before[len(before) - 1 - tail] == after[len(after) - 1 - tail]):
        tail += 1
    piece = after[head:len(after) - tail]
    assert before[:head] + before[len(before) - tail:] == before, \
        "other bytes were changed"
    # Where the texts share bytes at the edge, move to the start of an event.
    start = after.rfind(b',\n{"ph"', 0, head + 8)
    while start >= 0 and not (head - start <= 64):
        start = -1
    if start >= 0:
        piece = after[start:start + len(piece)]
        assert before == after[:start] + after[start + len(piece):]
    return json.loads(b"[" + piece.strip().strip(b",") + b"]",
                      parse_float=Fraction)


def partial_overlaps(events):
    """Pairs of slices on one row of which neither holds the other."""
    rows = {}
    for e in events:
        if e["ph"] == "X":
            rows.setdefault((e["pid"], e["tid"]), []).append(
                (ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
    found = []
    for row, spans in rows.items():
        stack = []
        for start, end in spans:
            while stack and stack[-1] <= start:
                stack.pop()
            if stack and end > stack[-1]:
                found.append((row, start, end))
            stack.append(end)
    return found
