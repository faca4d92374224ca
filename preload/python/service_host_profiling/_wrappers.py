"""`profile` for functions whose calls return before their work is done.

Each wrapper is of the same kind as what it wraps, so that frameworks that look
(inspect.iscoroutinefunction and friends) see no difference. The span starts at
the first step, not at the call: a coroutine that is never awaited is no span.
One that is resumed on another thread than it began on cannot end its span,
which then counts as unfinished.
"""

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
