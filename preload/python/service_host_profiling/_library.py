"""Where libshp.so and the `shp` program are, and how the library is loaded.

Three ways in: preloaded before CPython started (the package is then a builtin
whose modules come out of the library), preloaded into a program that loads
CPython later, or not preloaded and found beside this package.
"""

import os
import shutil
import sys
import sysconfig

_LIBRARY = "libshp.so"
_PACKAGE = __name__.rpartition(".")[0]


def _preloaded_path():
    """What LD_PRELOAD names, so that it is not loaded a second time."""
    words = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    for word in words:
        if os.path.basename(word) == _LIBRARY:
            return word
    return None


def is_builtin():
    return _PACKAGE in sys.builtin_module_names


def is_preloaded():
    return is_builtin() or _preloaded_path() is not None


def _package_directory():
    # What an embedded module says its file is lies inside the library.
    return None if is_builtin() else os.path.dirname(os.path.abspath(__file__))


def _candidates():
    preloaded = _preloaded_path()
    if preloaded:
        yield preloaded
    directory = _package_directory()
    if directory is None:
        return
    yield os.path.join(directory, _LIBRARY)
    # PREFIX/lib/python3.X/site-packages/…: a system's own copy is in PREFIX/lib.
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for _ in range(3):
        directory = os.path.dirname(directory)
        for folder in ("", multiarch, "shp"):
            yield os.path.join(directory, folder, _LIBRARY)


def library_path():
    """Absolute path of libshp.so, or None where there is none."""
    if is_builtin():
        from . import _native
        return _native.library_path()
    for path in _candidates():
        if os.path.isfile(path):
            return os.path.abspath(path)
    return None


def open_native(name):
    """The extension module out of libshp.so; ImportError where it is not."""
    path = library_path()
    if path is None:
        raise ImportError(
            f"{_LIBRARY} is neither preloaded nor beside {_PACKAGE}; unset "
            "HOST_SERVICE_PROFILER_ENABLE to run without recording", name=name)
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_file_location
    loader = ExtensionFileLoader(name, path)
    module = module_from_spec(
        spec_from_file_location(name, path, loader=loader))
    loader.exec_module(module)
    return module


def program_path():
    """The `shp` program that belongs to this library, or None."""
    library = library_path()
    directories = [_package_directory()]
    if library:
        beside = os.path.dirname(os.path.realpath(library))
        directories += [os.path.join(beside, way)
                        for way in ("", "../cli", "../bin", "../../bin")]
    for directory in filter(None, directories):
        path = os.path.join(directory, "shp")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.normpath(path)
    return shutil.which("shp")
