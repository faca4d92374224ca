"""Host files written by hand, so that a test knows where every span belongs.

Independent of our own writer: plain json, the keys of span_format.h.
"""

import json
import pathlib
import sqlite3


class HostSession:
    """One session of one process; times of spans are CLOCK_REALTIME ns."""

    def __init__(self, pid, begin, end, hostname="host-a", offset=None,
                 width=400):
        self.pid = pid
        self.hostname = hostname
        self.begin = begin
        self.end = end
        # REALTIME minus MONOTONIC.
        self.offset = begin - 5_000_000_000 if offset is None else offset
        self.width = width
        self.rows = []
        self.extra = {}
        self.lines = []

    def span(self, name, start, duration, tid=None, args=None):
        self.rows.append({
            "type": "span", "id": len(self.rows) + 1, "pid": self.pid,
            "tid": self.pid if tid is None else tid, "name": name,
            "start_ns": start - self.offset, "duration_ns": duration,
            "args": args or {}})

    def metadata(self):
        half = self.width // 2
        return {
            "type": "metadata", "schema_version": 3, "session_id": "by hand",
            "pid": self.pid, "hostname": self.hostname, "clock": "monotonic",
            "start_monotonic_ns": self.begin - self.offset - half,
            "start_realtime_ns": self.begin,
            "clock_uncertainty_ns": self.width,
            "written_spans": len(self.rows), "dropped_spans": 0,
            "stop_monotonic_ns": self.end - self.offset + half,
            "stop_realtime_ns": self.end, "complete": True, **self.extra}

    def write(self, path):
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as out:
            for row in [self.metadata(), *self.rows, *self.lines]:
                out.write(json.dumps(row, ensure_ascii=False,
                                     separators=(",", ":")) + "\n")
        return path


COLUMNS = ("id", "pid", "tid", "name", "start_ns", "duration_ns", "args")


def write_database(path, made, columns=COLUMNS, meta=None, rows=None,
                   table="spans"):
    """A HostSession as one of the predecessor's historical SQLite files: columns
    by name, metadata as JSON, `meta` over it, `rows` instead of its own."""
    path.parent.mkdir(exist_ok=True)
    values = {**made.metadata(), "schema_version": 2, **(meta or {})}
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE metadata(key TEXT PRIMARY KEY, value TEXT)")
        db.executemany("INSERT INTO metadata VALUES(?,?)",
                       [(k, json.dumps(v)) for k, v in values.items()])
        db.execute(f'CREATE TABLE "{table}"({",".join(columns)})')
        for row in made.rows if rows is None else rows:
            cells = {**row, "end_ns": row["start_ns"] + row["duration_ns"],
                     "args": json.dumps(row["args"]),
                     "attrs": json.dumps(row["args"])}
            db.execute(f'INSERT INTO "{table}" VALUES('
                       f'{",".join("?" * len(columns))})',
                       [cells[c] for c in columns])
    db.close()
    return path
