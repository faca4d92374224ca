"""What the environment asks for of programs that were not changed: SHP_TRACE.

Began by _start_watch.py, once a process, before the program's first import.
"""

import os

from ._after_import import AfterImport
from ._switch import ENABLED


def begin(finder):
    """The finder that watches imports; None when nothing waits for any."""
    watch = AfterImport(finder)
    if ENABLED and os.environ.get("SHP_TRACE"):
        from . import _functions
        _functions.begin(os.environ["SHP_TRACE"], watch)
    return watch if watch.waits() else None
