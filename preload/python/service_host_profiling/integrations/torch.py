"""Host recordings that go with one Torch profiler capture of this process.

The caller starts and stops Torch's profiler; a binding keeps the host side: it
records into a staging directory while Torch's own directory does not exist
yet, and files the result away beside the trace when that does.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
import os
from pathlib import Path
import shutil
import uuid

from .._switch import ENABLED

_STAGING = ".host_trace"
_ARCHIVE = "HOST_TRACE"
_LONGEST_SESSION_ID = 128


def is_under(path, root):
    """Path.is_relative_to, which 3.8 does not have."""
    return path == root or root in path.parents


@contextmanager
def exclusive_file(final, prefix, suffix, mode, **options):
    """A new file that gets its final name when it is whole and on disk.

    FileExistsError when somebody has the name; nothing is left behind."""
    pending = final.parent / f"{prefix}{uuid.uuid4().hex}{suffix}"
    with pending.open(mode, **options) as stream:
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            os.link(str(pending), str(final))
        finally:
            pending.unlink()


@dataclass
class TorchBinding:
    """One capture's host recording: start, (stop), archive. Not reusable."""

    output_root: Path
    session_id: str
    pid: int = field(default_factory=os.getpid)
    db_path: Path | None = field(default=None, init=False)
    session_dir: Path | None = field(default=None, init=False)

    @property
    def output_dir(self):
        """The staging directory of this session."""
        return self.output_root / _STAGING / self.session_id

    def _check_process(self):
        if self.pid != os.getpid():
            raise RuntimeError("TorchBinding cannot be reused after fork; "
                               "attach in each worker")

    def start(self):
        """Begin recording; the path that the closed file will have."""
        if not ENABLED:
            return None
        self._check_process()
        if self.db_path is not None:
            raise RuntimeError("This binding already owns a collection; "
                               "create a new binding per capture")
        from ..collector import start
        path = start(self.output_dir, session_id=self.session_id)
        self.db_path = Path(path).resolve()
        return self.db_path

    def archive(self, host_capture_dir):
        """Move the closed file into HOST_TRACE/ of a directory that lies under
        the output root; the new path. Asked again for the same place, it only
        says where the file is."""
        if not ENABLED:
            return None
        self._check_process()
        target = self._checked_target(host_capture_dir)
        if self.db_path is None:
            raise RuntimeError("No Host data is bound; "
                               "call binding.start() first")
        source = self.db_path.resolve(strict=True)
        if self.session_dir is not None:
            if target != self.session_dir or source != self.db_path:
                raise ValueError("This session is already finalized to "
                                 "another location")
            return self.db_path
        if not is_under(source, self.output_dir.resolve()):
            raise ValueError("Host data must belong to this binding's "
                             "staging directory")
        self._check_closed(source)
        self.db_path = _move_exclusively(source, target / _ARCHIVE)
        self.session_dir = target
        return self.db_path

    def _checked_target(self, directory):
        target = Path(directory).resolve(strict=True)
        if not target.is_dir() or not is_under(target, self.output_root):
            raise ValueError("Host capture directory must be under the Host "
                             "output_root")
        if is_under(target, self.output_root / _STAGING):
            raise ValueError("Supply the Host capture directory, not the "
                             "staging directory")
        return target

    def _check_closed(self, source):
        """The file is ours, whole, and holds what its metadata counts."""
        from ..parser import open_host_file
        host = open_host_file(source)
        for _ in host.spans():
            pass
        metadata = host.metadata
        if (metadata.get("session_id") != self.session_id
                or metadata.get("pid") != self.pid):
            raise ValueError("Host data process/session does not match this "
                             "binding")
        if metadata.get("complete") is not True:
            raise RuntimeError("Stop Host collection successfully before "
                               "archiving")
        if source.suffix == ".db":
            log = Path(f"{source}-wal")
            if log.exists() and log.stat().st_size > 0:
                raise RuntimeError("Host DB has an outstanding WAL; "
                                   "close/checkpoint the collector before "
                                   "archiving")


def _move_exclusively(source, directory):
    directory.mkdir(exist_ok=True)
    destination = directory / source.name
    try:
        with exclusive_file(destination, ".archive-", ".pending",
                            "xb") as output, source.open("rb") as original:
            shutil.copyfileobj(original, output)
    except FileExistsError:
        raise FileExistsError("Refusing to replace existing Host data: "
                              f"{destination}") from None
    try:
        source.unlink()
    except BaseException:
        # One file in two places would be merged twice.
        destination.unlink()
        raise
    return destination


def attach_torch_profiler(output_root, *, session_id=None):
    """A TorchBinding for one capture of this process; starts nothing."""
    root = Path(output_root).resolve()
    if session_id is None:
        session_id = uuid.uuid4().hex
    if (not isinstance(session_id, str)
            or not 0 < len(session_id) <= _LONGEST_SESSION_ID):
        raise ValueError("session_id must be a non-empty string of at most "
                         f"{_LONGEST_SESSION_ID} characters")
    if not all(char.isascii() and (char.isalnum() or char in "_-")
               for char in session_id):
        raise ValueError("session_id may contain only ASCII letters, digits, "
                         "underscore and hyphen")
    return TorchBinding(root, session_id)
