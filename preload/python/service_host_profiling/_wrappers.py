"""`profile` for functions whose calls return before their work is done.

Each wrapper is of the same kind as what it wraps, so that frameworks that look
(inspect.iscoroutinefunction and friends) see no difference. The span starts at
the first step, not at the call: a coroutine that is never awaited is no span.
One that is resumed on another thread than it began on cannot end its span,
which then counts as unfinished.
"""

import functools
import inspect

from . import _native


def wrap_suspending(function, name, attrs):
    """A wrapper of the function's own kind; None for an ordinary function."""
    if inspect.isasyncgenfunction(function):
        return _async_generator(function, name, attrs)
    if inspect.iscoroutinefunction(function):
        return _coroutine(function, name, attrs)
    if inspect.isgeneratorfunction(function):
        return _generator(function, name, attrs)
    return None


def _coroutine(function, name, attrs):
    start, end = _native.span_start, _native.span_end

    async def wrapped(*args, **kwargs):
        span_id = start(name, attrs)
        try:
            return await function(*args, **kwargs)
        finally:
            end(span_id)

    return wrapped


def _generator(function, name, attrs):
    start, end = _native.span_start, _native.span_end

    def wrapped(*args, **kwargs):
        span_id = start(name, attrs)
        try:
            return (yield from function(*args, **kwargs))
        finally:
            end(span_id)

    return wrapped


def _async_generator(function, name, attrs):
    start, end = _native.span_start, _native.span_end

    async def wrapped(*args, **kwargs):
        span_id = start(name, attrs)
        try:
            inner = function(*args, **kwargs)
            step = inner.asend(None)
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)
        finally:
            end(span_id)

    return wrapped


def wrap_asking(function, name, capture, after):
    """The function as `profile` wraps it, where capture(locals) gives the
    attributes of a call and after(locals) is called behind it."""
    if capture is None and after is None:
        from ._python_collector import profile
        return _with_cache_methods(profile(name)(function), function)
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[:code.co_argcount] if code else ()
    defaults = _defaults(inspect.unwrap(function), code, names)

    def scope_of(args, kwargs):
        return {**defaults, **dict(zip(names, args)), **kwargs}

    if inspect.iscoroutinefunction(function):
        async def wrapped(*args, **kwargs):
            scope = scope_of(args, kwargs)
            span_id = _native.span_start(name, capture and capture(scope))
            try:
                return await function(*args, **kwargs)
            finally:
                _native.span_end(span_id)
                _after(after, scope)
    elif (inspect.isgeneratorfunction(function)
          or inspect.isasyncgenfunction(function)):
        return functools.update_wrapper(
            wrap_suspending(function, name, None), function)
    else:
        def wrapped(*args, **kwargs):
            scope = scope_of(args, kwargs)
            span_id = _native.span_start(name, capture and capture(scope))
            try:
                return function(*args, **kwargs)
            finally:
                _native.span_end(span_id)
                _after(after, scope)

    return _with_cache_methods(functools.update_wrapper(wrapped, function),
                               function)


def _with_cache_methods(wrapped, function):
    """Those of functools.lru_cache, which are in no __dict__."""
    for name in ("cache_info", "cache_clear", "cache_parameters"):
        if hasattr(function, name) and not hasattr(wrapped, name):
            setattr(wrapped, name, getattr(function, name))
    return wrapped


def _after(after, scope):
    if after is not None:
        after(scope)


def _defaults(function, code, names):
    given = getattr(function, "__defaults__", None) or ()
    found = dict(zip(names[len(names) - len(given):], given))
    found.update(getattr(function, "__kwdefaults__", None) or {})
    return found
