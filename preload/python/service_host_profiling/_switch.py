"""Whether this process records, decided once when the package is imported."""

import os

from ._library import is_preloaded


def _decide():
    word = os.environ.get("HOST_SERVICE_PROFILER_ENABLE")
    return word != "0" if is_preloaded() else word == "1"


ENABLED = _decide()


def is_enabled():
    """Whether functions record; changing the environment needs a restart."""
    return ENABLED
