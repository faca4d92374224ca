"""The recording functions, whatever the switch says. Most are the library's."""

from functools import update_wrapper

from . import _native

start = _native.start
stop = _native.stop
span_start = _native.span_start
span_end = _native.span_end
span = _native.span
instant = _native.instant
counter = _native.counter


class ActiveSession:
    """The session that runs now, as integrations see it."""

    __slots__ = ("path", "pid")

    def __init__(self, path, pid):
        self.path = path
        self.pid = pid

    def __repr__(self):
        return f"ActiveSession(path={self.path!r}, pid={self.pid})"


def profile(name, attrs=None):
    """Decorate a function with a span around each of its calls.

    For `async def` and generator functions, sync and async, the span lasts from
    the first step of what the call returned to its end, waits included.
    """
    def decorate(function):
        from ._wrappers import wrap_suspending
        wrapped = wrap_suspending(function, name, attrs)
        if wrapped is None:
            wrapped = _native.Profiled(function, name, attrs)
        return update_wrapper(wrapped, function)

    return decorate


def __getattr__(name):
    if name == "_active":
        active = _native.active()
        return None if active is None else ActiveSession(*active)
    if name == "_lifecycle":
        return _native.lifecycle()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
