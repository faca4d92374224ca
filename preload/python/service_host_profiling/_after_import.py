"""Calls back when a module has been imported, whoever imports it and when.

The module's own loader stays in its place and type: only its exec_module is
shadowed until it runs.
"""

import sys

from . import _native


class AfterImport:
    """Finder that answers for the modules that somebody waits for."""

    def __init__(self, itself):
        self._itself = itself  # what stands in sys.meta_path for this
        self._waiting = []     # (wants(name), call(module))
        self._finding = set()

    def waits(self):
        return bool(self._waiting)

    def add(self, wants, call):
        """call(module) for each whose name `wants`, now or when imported."""
        self._waiting.append((wants, call))
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if wants(name) and not getattr(spec, "_initializing", False):
                _tell(call, module)

    def find_spec(self, name, path=None, target=None):
        if name in self._finding or not any(
                wants(name) for wants, _ in self._waiting):
            return None
        self._finding.add(name)
        try:
            spec = self._really_find(name, path, target)
        finally:
            self._finding.discard(name)
        if spec is not None and spec.loader is not None:
            self._shadow(spec.loader)
        return spec

    def _really_find(self, name, path, target):
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self._itself or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _shadow(self, loader):
        if isinstance(loader, type):  # builtin and frozen: one for all modules
            return
        real = getattr(loader, "exec_module", None)
        if real is None or getattr(real, "_of_libshp", False):
            return

        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            real(module)
            self._imported(module)

        exec_module._of_libshp = True
        try:
            loader.exec_module = exec_module
        except AttributeError:
            _native.log("import", f"{loader!r} cannot be watched")

    def _imported(self, module):
        for wants, call in list(self._waiting):
            if wants(module.__name__):
                _tell(call, module)


def _tell(call, module):
    try:
        call(module)
    except Exception as error:
        _native.log("import", f"{module.__name__}: {type(error).__name__}: "
                              f"{error}")
