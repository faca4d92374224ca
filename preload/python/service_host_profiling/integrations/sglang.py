"""Host recordings of one SGLang profiling window in one of its processes.

SGLang goes on to make its Torch trace itself. A capture brackets the window
with clock samples, files the closed host file away in HOST_TRACE/, and puts a
manifest beside it that says whose it is: rank, device, host, digest, clocks.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
import hashlib
import json
import os
from pathlib import Path
import sqlite3
import time

from .torch import TorchBinding, attach_torch_profiler, exclusive_file, is_under
from .._switch import ENABLED


def _clock_sample():
    """CLOCK_MONOTONIC_RAW between two reads of the clock that spans are in.

    `uncertainty_ns` is the whole distance of the two reads. The raw value is
    None where the platform has no such clock."""
    raw_clock = getattr(time, "CLOCK_MONOTONIC_RAW", None)
    before = time.monotonic_ns()
    raw = None if raw_clock is None else time.clock_gettime_ns(raw_clock)
    after = time.monotonic_ns()
    return {"monotonic_ns": (before + after) // 2,
            "monotonic_raw_ns": raw,
            "uncertainty_ns": after - before,
            "sample_before_ns": before,
            "sample_after_ns": after}


def _pid_namespace():
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        # Says what the pid is worth, rather than making a namespace up.
        return f"unavailable:{os.name}:process-local-pid"


def _closed_metadata(path):
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as stream:
            return json.loads(stream.readline())
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro",
                                 uri=True)) as database:
        rows = database.execute("SELECT key, value FROM metadata")
        return {key: json.loads(value) for key, value in rows}


def _sha256(path):
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


@dataclass
class SGLangCapture:
    """One profiling window of one process: start, stop, archive."""

    binding: TorchBinding
    profile_id: str
    rank: int | None = None
    physical_device: int | None = None
    source_version: object = None
    clock_anchors: dict = field(default_factory=dict, init=False)
    manifest_path: Path | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    @property
    def db_path(self):
        """Where the host file is, or will be."""
        return self.binding.db_path

    def start(self):
        """Begin recording; the path that the closed file will have."""
        if not ENABLED:
            return None
        self.binding._check_process()
        if self.binding.db_path is not None:
            raise RuntimeError("Create a new capture for each profiling "
                               "window")
        self.clock_anchors["start_before"] = _clock_sample()
        path = self.binding.start()
        self.clock_anchors["start_after"] = _clock_sample()
        return path

    def stop(self):
        """End the process's recording, if it is this capture's; its path.

        Only this stop takes the clock samples that the manifest needs. Called
        again, it says the path again."""
        if not ENABLED:
            return None
        self.binding._check_process()
        if self._stopped:
            return self.binding.db_path
        from .. import collector
        with collector._lifecycle:
            if not self._owns(collector._active):
                raise RuntimeError("This capture does not own the active "
                                   "process collector")
            self.clock_anchors["stop_before"] = _clock_sample()
            path = collector.stop()
            self.clock_anchors["stop_after"] = _clock_sample()
            if path.resolve() != self.binding.db_path.resolve():
                raise RuntimeError("Stopped database does not match the "
                                   "owning capture")
            self._stopped = True
            return path

    def _owns(self, active):
        mine = self.binding
        return (active is not None and mine.db_path is not None
                and active.pid == mine.pid
                and active.path.resolve() == mine.db_path.resolve())

    def archive(self, capture_root):
        """File the stopped recording away under `capture_root`, which is made
        if need be and lies under the output directory; the file's new path.

        `manifest_path` names the manifest then. Neither replaces a file."""
        if not ENABLED:
            return None
        self.binding._check_process()
        if not self._stopped:
            raise RuntimeError("Call capture.stop() successfully before "
                               "archive()")
        root = Path(capture_root).resolve()
        if not is_under(root, self.binding.output_root):
            raise ValueError("capture_root must be under the attached output "
                             "root")
        if is_under(root, self.binding.output_root / ".host_trace"):
            raise ValueError("capture_root cannot be the Host staging "
                             "directory")
        root.mkdir(parents=True, exist_ok=True)
        path = self.binding.archive(root)
        if self.manifest_path is None:
            self.manifest_path = self._publish_manifest(path, root)
        return path

    def _publish_manifest(self, path, root):
        metadata = _closed_metadata(path)
        if metadata.get("complete") is not True:
            raise RuntimeError("Only complete closed databases may be "
                               "published")
        label = "unranked" if self.rank is None else f"rank-{self.rank}"
        document = {
            "schema_version": 1,
            "type": "host_rank_archive",
            "complete": True,
            "profile_id": self.profile_id,
            "rank": self.rank,
            "session_id": self.binding.session_id,
            "db_relative_path": path.relative_to(root).as_posix(),
            "db_sha256": _sha256(path),
            "hostname": metadata["hostname"],
            "pid": metadata["pid"],
            "pid_namespace": _pid_namespace(),
            "physical_device": self.physical_device,
            "source_version": self.source_version,
            "clock_anchors": self.clock_anchors,
        }
        manifest = (path.parent /
                    f"{label}-{self.binding.session_id}.closed.json")
        with exclusive_file(manifest, ".pending-", ".json", "x",
                            encoding="utf-8", newline="\n") as stream:
            json.dump(document, stream, ensure_ascii=False, indent=2,
                      allow_nan=False)
            stream.write("\n")
        return manifest


def _is_count(value):
    return (isinstance(value, int) and not isinstance(value, bool)
            and value >= 0)


def attach_sglang(output_dir, *, profile_id, rank=None, physical_device=None,
                  source_version=None):
    """An SGLangCapture for this process; recording begins with its start()."""
    if not isinstance(profile_id, str) or not profile_id:
        raise ValueError("profile_id must be a non-empty SGLang capture "
                         "identifier")
    for what, value in (("rank", rank), ("physical_device", physical_device)):
        if value is not None and not _is_count(value):
            raise ValueError(f"{what} must be a non-negative integer or None")
    # A copy by way of JSON: opaque, and sure to go into the manifest later.
    provenance = json.loads(json.dumps(source_version, allow_nan=False))
    return SGLangCapture(attach_torch_profiler(output_dir), profile_id, rank,
                         physical_device, provenance)
