"""The recording functions, or ones that do nothing, chosen at import."""

from ._switch import ENABLED, is_enabled

if ENABLED:
    from . import _python_collector
    from ._python_collector import (counter, instant, profile, span, span_end, span_start, start,
                                    stop)

    def __getattr__(name):
        # Integrations ask for the state of the moment: _active, _lifecycle.
        return getattr(_python_collector, name)
else:
    _active = None

    def start(output_dir, *, session_id=None):
        return None

    def stop():
        return None

    def span_start(name, attrs=None):
        return -1

    def span_end(span_id):
        return None

    class _NoSpan:
        """Stands for a span that is not recorded."""

        __slots__ = ("name", "attrs")

        def __init__(self, name, attrs=None):
            self.name = name
            self.attrs = attrs

        def __enter__(self):
            return self

        def __exit__(self, kind, value, trace):
            return None

        def __call__(self, function):
            return function

    def span(name, attrs=None):
        return _NoSpan(name, attrs)

    def instant(name, attrs=None):
        return None

    def counter(name, value):
        return None

    def profile(name, attrs=None):
        return _itself

    def _itself(function):
        return function
