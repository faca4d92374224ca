"""Run by the library when CPython starts, where SHP_TRACE or SHP_FOLLOW is set.

In a namespace of its own and before `os` is there, so it may only use `sys`. It
puts a finder in front that finds nothing: at the first import after the
interpreter's own, it asks the package who waits for which module.
"""

import sys


class StartWatch:
    """Finder that tells the package of imports; finds nothing by itself."""

    def __init__(self):
        self._waits = True
        self._inner = None

    def __repr__(self):
        return "<import watch of libshp.so>"

    def find_spec(self, name, path=None, target=None):
        if self._waits and _is_up():
            self._waits = False
            self._begin()
        return (None if self._inner is None
                else self._inner.find_spec(name, path, target))

    def _begin(self):
        try:
            from service_host_profiling import _zero_code
            # The list of finders is being walked: this one stays in it.
            self._inner = _zero_code.begin(self)
        except Exception:  # the program goes on without
            self._inner = None


def _is_up():
    """Whether `os` and `site` are whole."""
    modules = sys.modules
    if "os" not in modules:
        return False
    for name in ("os", "site"):
        spec = getattr(modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            return False
    return True


sys.meta_path.insert(0, StartWatch())
