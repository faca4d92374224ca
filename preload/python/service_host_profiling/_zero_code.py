"""What the environment asks for of programs that were not changed: SHP_TRACE, SHP_FOLLOW.

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
    if ENABLED and os.environ.get("SHP_FOLLOW"):
        _follow(os.environ["SHP_FOLLOW"], watch)
    return watch if watch.waits() else None


def _follow(what, watch):
    if what == "torch":
        from . import _follow_torch
        _follow_torch.begin(watch)
    else:
        from . import _native
        _native.log("SHP_FOLLOW", f"{what!r} is not torch")
