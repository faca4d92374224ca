"""Closed host files: a checking reader, and export and merge by `shp`."""

from contextlib import closing, contextmanager
import json
from pathlib import Path
import shutil
import sqlite3
import subprocess
import tempfile

from ._library import program_path

SCHEMA_VERSION = 3

_COUNTS = ("pid", "written_spans", "dropped_spans", "start_monotonic_ns",
           "start_realtime_ns", "stop_monotonic_ns", "stop_realtime_ns",
           "clock_uncertainty_ns")


def _is_count(value):
    return (isinstance(value, int) and not isinstance(value, bool)
            and value >= 0)


def _refuse_constant(word):
    raise ValueError(f"{word} is no JSON")


def _object(text):
    value = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _check_metadata(metadata):
    if metadata.get("schema_version") != SCHEMA_VERSION:
        raise ValueError("schema_version is not 3")
    for key in _COUNTS:
        if not _is_count(metadata.get(key)):
            raise ValueError(f"{key} is no count")
    for key in ("session_id", "hostname"):
        if not isinstance(metadata.get(key), str) or not metadata[key]:
            raise ValueError(f"{key} is no text")
    if metadata.get("clock") != "monotonic":
        raise ValueError("clock is not monotonic")
    if metadata["stop_monotonic_ns"] < metadata["start_monotonic_ns"]:
        raise ValueError("the session stops before it starts")


def _check_span(span, metadata, number):
    if span.get("id") != number:
        raise ValueError(f"span id is {span.get('id')!r}, not {number}")
    if span.get("pid") != metadata["pid"]:
        raise ValueError("span of another process")
    for key in ("tid", "start_ns", "duration_ns"):
        if not _is_count(span.get(key)):
            raise ValueError(f"{key} is no count")
    name = span.get("name")
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError("span without a name")
    if not isinstance(span.get("args"), dict):
        raise ValueError("args is no object")
    if (span["start_ns"] < metadata["start_monotonic_ns"]
            or span["start_ns"] + span["duration_ns"]
            > metadata["stop_monotonic_ns"]):
        raise ValueError("span outside its session")


class HostFile:
    """A closed JSONL file. `spans()` checks each row, and the count at the end;
    a ValueError names file and line."""

    def __init__(self, path):
        self.path = Path(path)
        with self.path.open("rb") as stream:
            self.metadata = self._parse(1, stream.readline())
        try:
            if self.metadata.get("type") != "metadata":
                raise ValueError("not the metadata of a host file")
            _check_metadata(self.metadata)
        except ValueError as error:
            raise self._error(1, error) from None

    def _error(self, line, error):
        return ValueError(f"{self.path}: line {line}: {error}")

    def _parse(self, line, raw):
        try:
            if not raw.endswith(b"\n"):
                raise ValueError("the line is cut off")
            return _object(raw.decode("utf-8"))
        except ValueError as error:
            raise self._error(line, error) from None

    def spans(self):
        """The span rows, as dicts; other rows are skipped."""
        count = 0
        line = 1
        with self.path.open("rb") as stream:
            stream.readline()
            for line, raw in enumerate(stream, 2):
                row = self._parse(line, raw)
                if row.get("type") != "span":
                    continue
                count += 1
                try:
                    _check_span(row, self.metadata, count)
                except ValueError as error:
                    raise self._error(line, error) from None
                yield row
        if count != self.metadata["written_spans"]:
            raise self._error(line, f"{count} spans, where the metadata counts "
                                    f"{self.metadata['written_spans']}")


class HistoricalFile:
    """A SQLite file of an older recorder: metadata(key, value) with JSON
    values, and a table of spans whose columns are found by name."""

    def __init__(self, path):
        self.path = Path(path)
        try:
            with closing(self._open()) as database:
                rows = database.execute("SELECT key, value FROM metadata")
                self.metadata = {key: json.loads(value) for key, value in rows}
                self._table, self._columns = self._find_spans(database)
        except sqlite3.Error as error:
            raise ValueError(f"{self.path}: {error}") from None

    def _open(self):
        return sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro",
                               uri=True)

    def _find_spans(self, database):
        tables = [row[0] for row in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            quoted = '"' + table.replace('"', '""') + '"'
            columns = {row[1] for row in
                       database.execute(f"PRAGMA table_info({quoted})")}
            end = next((c for c in ("duration_ns", "end_ns") if c in columns),
                       None)
            if end and {"pid", "tid", "name", "start_ns"} <= columns:
                args = next((c for c in ("args", "attrs") if c in columns),
                            "NULL")
                return quoted, (end, args)
        raise ValueError(f"{self.path}: no table of spans")

    def spans(self):
        """The spans, as rows of a host file."""
        end, args = self._columns
        count = 0
        with closing(self._open()) as database:
            for pid, tid, name, start, last, text in database.execute(
                    f"SELECT pid, tid, name, start_ns, {end}, {args} "
                    f"FROM {self._table}"):
                count += 1
                duration = last if end == "duration_ns" else last - start
                if not name or duration < 0:
                    raise ValueError(f"{self.path}: row {count}: bad span")
                yield {"type": "span", "id": count, "pid": pid, "tid": tid,
                       "name": name, "start_ns": start,
                       "duration_ns": duration,
                       "args": _object(text) if text else {}}
        expected = self.metadata.get("written_spans", count)
        if count != expected:
            raise ValueError(f"{self.path}: {count} spans, where the metadata "
                             f"counts {expected}")


def open_host_file(path):
    """A checking reader of one closed file, by its name's ending."""
    path = Path(path)
    return HistoricalFile(path) if path.suffix == ".db" else HostFile(path)


def _run(words):
    program = program_path()
    if program is None:
        raise RuntimeError("the program shp is neither beside libshp.so nor on "
                           "PATH")
    result = subprocess.run([program, *map(str, words)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False)
    if result.returncode != 0:
        said = result.stderr.decode("utf-8", "replace").strip()
        raise ValueError(said or f"shp ended with status {result.returncode}")
    return result.stdout.decode("utf-8", "surrogateescape")


def _paths(paths):
    return [paths] if isinstance(paths, (str, Path)) else list(paths)


def export_chrome_trace(paths, output):
    """Write closed host files as one Chrome trace; its path."""
    _run(["export", *_paths(paths), "-o", output])
    return Path(output)


def _clock_words(option, value):
    if value is None:
        return []
    if isinstance(value, dict):
        value = {str(key): item for key, item in value.items()}
    return [option, json.dumps(value)]


@contextmanager
def _directory_of(hosts):
    """A directory that holds these host files and no others: merge-dir takes
    one. Theirs, if that is all there is in it; else one made for the purpose."""
    hosts = [Path(host).resolve(strict=True) for host in hosts]
    if not hosts:
        raise ValueError("no host files were given")
    own = hosts[0].parent
    if sorted(own.rglob("*.jsonl")) == sorted(hosts):
        yield own
        return
    with tempfile.TemporaryDirectory(prefix="shp-hosts-") as directory:
        for number, host in enumerate(hosts):
            # Not a link: merge-dir follows none.
            shutil.copy(str(host), f"{directory}/{number}-{host.name}")
        yield directory


def merge_torch_directory(hosts, torch_dir, *, pid_map=None,
                          clock_offset_ns=None, clock_anchors_ns=None):
    """Put the spans of host files into the Torch traces under a directory; the
    paths of the traces that got some."""
    if clock_offset_ns is not None and clock_anchors_ns is not None:
        raise ValueError("give a clock offset or clock anchors, not both")
    words = ["--torch-dir", torch_dir, "--json",
             *_clock_words("--pid-map", pid_map),
             *_clock_words("--clock-offset-ns", clock_offset_ns),
             *_clock_words("--clock-anchors-ns", clock_anchors_ns)]
    with _directory_of(_paths(hosts)) as directory:
        report = json.loads(_run(["merge-dir", directory, *words]))
    return [Path(trace["output"]) for trace in report["traces"]
            if trace["outcome"] == "merged"]
