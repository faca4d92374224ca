"""What the tests of merge-dir's command line share: traces of a few lines and
sessions whose every time is a whole µs, so that expected numbers can be worked
out in the test itself. BASE is a whole number of Kineto's base periods.
"""

import gzip
import json
import re

from host_files import HostSession
from shp_testing import Case, SHP, clean_environment, run

BASE = 7_889_238 * 226 * 10**9
ERROR = "shp merge-dir: "


def trace(pid=7, begin=1000, end=9000, base=BASE, more=None, top=None,
          label=True):
    """A trace of one process whose window is [begin, end] µs after its base."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": pid,
         "tid": pid, "ts": begin, "dur": end - begin},
    ] + (more or [])
    if label:
        events.insert(0, {"ph": "M", "name": "process_labels", "pid": pid,
                          "tid": 0, "args": {"labels": "CPU"}})
    document = {"schemaVersion": 1, **(top or {}), "traceEvents": events}
    if base is not None:
        document["baseTimeNanoseconds"] = base
    return json.dumps(document).encode()


def session(pid=7, begin=0, end=10_000, spans=((2000, 10),), **more):
    """A host session over [begin, end] µs after BASE, its spans in µs too."""
    made = HostSession(pid, BASE + begin * 1000, BASE + end * 1000, **more)
    for start, duration in spans:
        made.span("step", BASE + round(start * 1000), round(duration * 1000))
    return made


class Merge(Case):
    needs = (SHP,)

    def setUp(self):
        super().setUp()
        self.host = self.folder / "host"
        self.torch = self.folder / "torch"
        self.host.mkdir()
        self.torch.mkdir()

    def put(self, name, content):
        path = self.torch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz")
                         else content)
        return path

    def put_host(self, name="one.jsonl", made=None):
        return (made or session()).write(self.host / name)

    def merge(self, *arguments):
        return run([SHP, "merge-dir", self.host, "--torch-dir", self.torch,
                    *arguments], env=clean_environment())

    def expect(self, result, status, out=None, err=None):
        what = f"{result.args}\n{result.stdout}\n{result.stderr}"
        self.assertEqual(result.returncode, status, what)
        replaced = [(str(self.host) + "/", ""), (str(self.torch) + "/", "")]
        for text, want in ((result.stdout, out), (result.stderr, err)):
            for old, new in replaced:
                text = text.replace(old, new)
            # Of a derived clock the offset follows from the host file; the
            # tests of clocks look at it.
            text = re.sub(r"(clock realtime) \+\d+ ns", r"\1", text)
            if want is not None:
                self.assertEqual(text, want, what)

    def spans_of(self, path):
        raw = path.read_bytes()
        document = json.loads(gzip.decompress(raw) if path.suffix == ".gz"
                              else raw)
        return [(e["pid"], e["ts"], e["dur"]) for e in document["traceEvents"]
                if e.get("cat") == "shp" and e["ph"] == "X"]
