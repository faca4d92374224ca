"""PEP 517 backend of `pip install .`: Meson builds, this packs a wheel.

In the tree and without requirements, so that it needs no network. The wheel
holds the package with libshp.so, shp and shpd inside its folder, where each
finds the others, and console scripts that start the two programs. It suits the
machine that built it: the programs use that machine's shared libraries.

pip calls it in the source tree, with a Python of its choice (3.8 and newer).
"""

import base64
import hashlib
import os
from pathlib import Path
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "preload" / "python" / "service_host_profiling"
NAME = "service_host_profiling"
BUILT = ("preload/libshp.so", "cli/shp", "daemon/shpd")


def _version():
    text = (ROOT / "meson.build").read_text(encoding="utf-8")
    return re.search(r"version: '([^']+)'", text).group(1)


def _metadata():
    return (f"Metadata-Version: 2.1\nName: service-host-profiling\n"
            f"Version: {_version()}\n"
            "Summary: Named host spans beside the GPU's, at no cost that you "
            "can feel\nRequires-Python: >=3.8\nLicense: MIT\n")


def _tag():
    return f"py3-none-linux_{platform.machine()}"


def _tool(name):
    path = shutil.which(name)
    if path is None:
        raise RuntimeError(f"{name} is needed to build {NAME}: "
                           f"apt-get install {name.replace('ninja', 'ninja-build')}")
    return path


def _build(directory, configured):
    # pip's isolation would hide Meson's own modules from it.
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("PYTHONPATH", "PYTHONHOME",
                                  "PYTHONNOUSERSITE")}
    setup = [_tool("meson"), "setup", directory, ROOT, "-Dtests=false",
             "--buildtype=release"]
    compile_ = [_tool("ninja"), "-C", directory, *BUILT]
    for command in [compile_] if configured else [setup, compile_]:
        subprocess.run([str(word) for word in command], check=True,
                       env=environment)


def _strip(source, target):
    shutil.copy(source, target)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


class _Wheel:
    """A wheel being written: files first, close() adds their RECORD."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info = f"{NAME}-{_version()}.dist-info"
        self.rows = []

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        self.rows.append(f"{name},sha256={digest.decode().rstrip('=')},"
                         f"{len(data)}")

    def close(self):
        record = f"{self.info}/RECORD"
        self.rows.append(f"{record},,")
        self.zip.writestr(record, "\n".join(self.rows) + "\n")
        self.zip.close()


def _package_files():
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"{NAME}-{_version()}-{_tag()}.whl"
    wheel = _Wheel(Path(wheel_directory) / name)
    for path in _package_files():
        wheel.add(path.relative_to(PACKAGE.parent).as_posix(),
                  path.read_bytes())
    # -C build-dir=DIR: a tree that Meson has set up already.
    given = (config_settings or {}).get("build-dir")
    with tempfile.TemporaryDirectory(prefix="shp-build-") as directory:
        stripped = Path(directory) / "stripped"
        tree = Path(given or directory).resolve()
        _build(tree, given is not None)
        for built in BUILT:
            _strip(tree / built, stripped)
            wheel.add(f"{NAME}/{Path(built).name}", stripped.read_bytes(),
                      0o755)
    wheel.add(f"{wheel.info}/METADATA", _metadata().encode())
    wheel.add(f"{wheel.info}/WHEEL",
              ("Wheel-Version: 1.0\nGenerator: shp\nRoot-Is-Purelib: false\n"
               f"Tag: {_tag()}\n").encode())
    wheel.add(f"{wheel.info}/entry_points.txt",
              (f"[console_scripts]\nshp = {NAME}._programs:shp\n"
               f"shpd = {NAME}._programs:shpd\n").encode())
    wheel.close()
    return name


def build_sdist(sdist_directory, config_settings=None):
    stem = f"{NAME}-{_version()}"
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"],
                           check=True, stdout=subprocess.PIPE).stdout
    path = Path(sdist_directory) / f"{stem}.tar.gz"
    with tarfile.open(str(path), "w:gz") as archive:
        for file in files.decode().split("\0"):
            if file:
                archive.add(str(ROOT / file), f"{stem}/{file}")
        with tempfile.NamedTemporaryFile("w") as metadata:
            metadata.write(_metadata())
            metadata.flush()
            archive.add(metadata.name, f"{stem}/PKG-INFO")
    return path.name


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []
