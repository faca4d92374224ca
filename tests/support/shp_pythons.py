"""The CPythons of this machine that tests run our package on, and the package
as it is when installed without being preloaded."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

from shp_testing import BUILD, LIBRARY, SHP, SHPD, SOURCE, clean_environment

VERSIONS = [(3, minor) for minor in range(8, 15)]
PACKAGE = SOURCE / "preload" / "python" / "service_host_profiling"
_ASK = ("import sys, sysconfig; print(*sys.version_info[:2], "
        "sys.implementation.name, "
        "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)")


def _candidates():
    """python3 first, then what pyenv and the distribution have."""
    yield shutil.which("python3")
    yield "/usr/bin/python3"
    roots = [os.environ.get("PYENV_ROOT"), pathlib.Path.home() / ".pyenv"]
    for root in filter(None, roots):
        yield from sorted(pathlib.Path(root).glob("versions/3.*/bin/python3"))
    for major, minor in VERSIONS:
        yield shutil.which(f"python{major}.{minor}")


def _version_of(python):
    try:
        answer = subprocess.run(
            [str(python), "-c", _ASK], stdin=subprocess.DEVNULL,
            env=clean_environment(LD_PRELOAD=""), timeout=30,
            capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    supported = answer[2] == "cpython" and answer[3] == "0"
    return (int(answer[0]), int(answer[1])) if supported else None


@functools.lru_cache(maxsize=None)
def pythons():
    """{(3, 11): path, …}: one interpreter a version, and a line on stderr for
    each version that is not here."""
    found = {}
    for candidate in filter(None, _candidates()):
        version = _version_of(candidate)
        if version in VERSIONS:
            found.setdefault(version, str(candidate))
    if os.environ.get("SHP_TEST_PYTHONS"):  # "3.8 3.12": these only
        wanted = os.environ["SHP_TEST_PYTHONS"].split()
        found = {v: p for v, p in found.items()
                 if "%d.%d" % v in wanted}
    for version in VERSIONS:
        if version not in found:
            print("not tested, not here: CPython %d.%d" % version,
                  file=sys.stderr)
    return dict(sorted(found.items()))


def static_python():
    """Debian's python3, whose interpreter is in the executable; or None."""
    path = "/usr/bin/python3"
    return path if os.path.exists(path) and _version_of(path) else None


def installed_package(folder):
    """A folder for PYTHONPATH that holds the package as a wheel lays it out."""
    place = pathlib.Path(folder) / "site"
    target = place / PACKAGE.name
    shutil.copytree(PACKAGE, target,
                    ignore=shutil.ignore_patterns("__pycache__"))
    for built in (LIBRARY, SHP, SHPD):
        if built.exists():
            (target / built.name).symlink_to(built)
    return place


__all__ = ["BUILD", "pythons", "static_python", "installed_package"]
