"""Named host spans for servers that Torch profiles, recorded by libshp.so.

    import service_host_profiling as shp

    shp.start("captures")
    with shp.span("step", {"batch": 8}):
        ...
    path = shp.stop()

Functions do nothing where recording is off: not preloaded and
HOST_SERVICE_PROFILER_ENABLE is not "1", or preloaded and it is "0".
"""

from ._switch import is_enabled

__version__ = "0.1.0"

__all__ = [
    "start", "stop", "span_start", "span_end", "span", "profile", "instant",
    "counter", "is_enabled", "attach_torch_profiler", "attach_sglang",
]

# Where each name comes from when it is first asked for: importing the package
# must cost next to nothing.
_HOMES = {
    "start": "collector",
    "stop": "collector",
    "span_start": "collector",
    "span_end": "collector",
    "span": "collector",
    "profile": "collector",
    "instant": "collector",
    "counter": "collector",
    "attach_torch_profiler": "integrations.torch",
    "attach_sglang": "integrations.sglang",
}


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value  # later calls find it without coming here
    return value


def __dir__():
    return sorted({*globals(), *_HOMES})
