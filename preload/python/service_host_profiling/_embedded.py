"""Makes the builtin `service_host_profiling` a package with nothing installed.

Run by the library when the builtin is imported, in a namespace of its own. The
modules' sources are in the library; the finder that serves them answers for
this package only, and the interpreter's own finders find nothing before it,
since the package's search path is empty.
"""

import sys
from importlib.machinery import BuiltinImporter, ModuleSpec

_PACKAGE = "service_host_profiling"
_NATIVE = _PACKAGE + "._native"


class EmbeddedImporter:
    """Finder and loader of the modules that are inside libshp.so."""

    def __init__(self, native):
        self._native = native
        self._library = native.library_path() or "libshp.so"

    def __repr__(self):
        return f"<modules of {self._library}>"

    def _entry(self, name):
        entry = self._native.embedded_source(name)
        if entry is None:
            raise ImportError(f"no module {name!r} in {self._library}",
                              name=name)
        return entry

    def find_spec(self, name, path=None, target=None):
        if name == _NATIVE:
            return ModuleSpec(name, BuiltinImporter, origin="built-in")
        if not name.startswith(_PACKAGE + "."):
            return None
        entry = self._native.embedded_source(name)
        if entry is None:
            return None
        spec = ModuleSpec(name, self, origin=self.get_filename(name),
                          is_package=entry[1])
        spec.has_location = True  # __file__, as modules in a zip have it
        return spec

    def invalidate_caches(self):
        pass

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.get_code(module.__spec__.name), module.__dict__)

    def is_package(self, name):
        return self._entry(name)[1]

    def get_filename(self, name):
        tail = "/__init__.py" if self.is_package(name) else ".py"
        return f"{self._library}/{name.replace('.', '/')}{tail}"

    def get_source(self, name):
        return self._entry(name)[0].decode("utf-8")

    def get_code(self, name):
        return compile(self._entry(name)[0], self.get_filename(name), "exec",
                       dont_inherit=True)


def install(package):
    """`package` is the module being imported; runs its __init__ in it."""
    spec = package.__spec__
    spec.submodule_search_locations = package.__path__ = []
    package.__package__ = _PACKAGE
    native_spec = ModuleSpec(_NATIVE, BuiltinImporter, origin="built-in")
    native = BuiltinImporter.create_module(native_spec)
    native.__spec__ = native_spec
    native.__loader__ = BuiltinImporter
    native.__package__ = _PACKAGE
    BuiltinImporter.exec_module(native)
    sys.modules[_NATIVE] = package._native = native
    importer = EmbeddedImporter(native)
    sys.meta_path[:] = [finder for finder in sys.meta_path
                        if type(finder).__name__ != "EmbeddedImporter"]
    sys.meta_path.append(importer)
    package.__loader__ = importer
    package.__file__ = importer.get_filename(_PACKAGE)
    exec(importer.get_code(_PACKAGE), package.__dict__)
