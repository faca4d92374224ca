"""Functions recorded by name: SHP_TRACE=FILE|PRESET[,…] (_function_list.py).

From CPython 3.12 on nothing is replaced: sys.monitoring calls the library for
the functions' code, whoever holds them. A span is then a slice of running:
coroutines and generators leave a gap where they wait. Before 3.12 the function
is replaced where its name stands, by one that `profile` makes: a span a call,
waits included.
"""

import os
import sys

from . import _native
from ._function_list import GLOBALS, matches, parse
from ._find_functions import NotTraceable, find, replace

_MONITORS = hasattr(sys, "monitoring")
_SUSPENDING = 0x20 | 0x80 | 0x200  # generator, coroutine, async generator
# 0 is the debuggers', 1 coverage's, 2 profilers', 5 the optimizer's.
_TOOL_IDS = (4, 3, 2)


def log(text):
    _native.log("SHP_TRACE", text)


def begin(words, watch):
    """Reads what `words` name and waits for the modules."""
    wanted = []
    for word in filter(None, (w.strip() for w in words.split(","))):
        found, wrong = _read(word)
        wanted += found
        for line in wrong:
            log(line)
    if not wanted:
        return
    tracer = _Monitor.make() if _MONITORS else _Replacer()
    if tracer is None:
        return
    plain = {w.module for w in wanted if "*" not in w.module}
    starred = tuple({w.module for w in wanted if "*" in w.module})
    watch.add(
        lambda name: name in plain or any(matches(p, name) for p in starred),
        lambda module: _apply(module, wanted, tracer))


def _read(word):
    if os.sep not in word:
        preset = _native.embedded_source(
            f"service_host_profiling.presets.{word}")
        if preset is not None:
            return parse(preset[0].decode("utf-8"), word)
        if not os.path.exists(word):
            return [], [f"{word!r} is neither a file nor a preset"]
    try:
        with open(word, encoding="utf-8") as stream:
            return parse(stream.read(), word)
    except (OSError, UnicodeDecodeError) as error:
        return [], [f"{word}: {getattr(error, 'strerror', None) or error}"]


def _apply(module, wanted, tracer):
    for one in wanted:
        if not matches(one.module, module.__name__):
            continue
        any_found = False
        for target in find(module, one.parts):
            try:
                tracer.trace(target, one)
                any_found = True
            except NotTraceable as error:
                if "*" not in "".join(one.parts):
                    log(f"{one.where}: {module.__name__}:{target.qualname}: "
                        f"{error}")
                    any_found = True
        if not any_found and not one.optional and "*" not in one.module:
            log(f"{one.where}: {module.__name__} has no "
                f"{'.'.join(one.parts)!r}")


def _asker(expressions, where, use):
    """A function of a call's locals that hands the values to `use`."""
    if not expressions:
        return None
    items = tuple(expressions.items())
    told = []

    def ask(scope):
        values = {}
        for key, code in items:
            try:
                values[key] = eval(code, GLOBALS, scope)
            except Exception as error:
                reason = f"{key}: {type(error).__name__}: {error}"
                _native.count_bad_args(f"{where}: {reason}")
                if not told:
                    told.append(log(f"{where}: {reason}"))
        return use(values)

    return ask


def _put_counters(values):
    for name, value in values.items():
        _native.counter(name, value)


def askers(one):
    return (_asker(one.attrs, one.where, lambda values: values or None),
            _asker(one.counts, one.where, _put_counters))


class _Monitor:
    """CPython 3.12 and later."""

    @classmethod
    def make(cls):
        tool = next((i for i in _TOOL_IDS
                     if sys.monitoring.get_tool(i) is None), None)
        if tool is None:
            log("all of sys.monitoring's tool ids are taken by others")
            return None
        return cls(tool)

    def __init__(self, tool):
        self._tool = tool
        self._replacer = _Replacer()
        monitoring = sys.monitoring
        monitoring.use_tool_id(tool, "shp")
        self._events = events = monitoring.events
        for event, callback in (
                (events.PY_START, _native.on_call_begin),
                (events.PY_RESUME, _native.on_call_resume),
                (events.PY_THROW, _native.on_call_resume),
                (events.PY_RETURN, _native.on_call_return),
                (events.PY_YIELD, _native.on_call_leave),
                (events.PY_UNWIND, _native.on_call_leave)):
            monitoring.register_callback(tool, event, callback)
        # These two cannot be asked for by code: they cost other functions
        # something when an exception passes through them.
        self._everywhere = events.PY_UNWIND
        monitoring.set_events(tool, self._everywhere)

    def trace(self, target, one):
        code = target.code()
        if code is None:  # a decorator hides it, or it is not Python's
            self._replacer.trace(target, one)
            return
        events = self._events
        local = events.PY_START | events.PY_RETURN
        if code.co_flags & _SUSPENDING:
            local |= events.PY_RESUME | events.PY_YIELD
            if not self._everywhere & events.PY_THROW:
                self._everywhere |= events.PY_THROW
                sys.monitoring.set_events(self._tool, self._everywhere)
        _native.trace_code(code, one.name or target.qualname, *askers(one))
        sys.monitoring.set_local_events(self._tool, code, local)


class _Replacer:
    """Before 3.12, and for what has no code of its own."""

    def trace(self, target, one):
        from ._wrappers import wrap_asking
        capture, after = askers(one)
        name = one.name or target.qualname
        replace(target, lambda function: wrap_asking(
            function, name, capture, after))
