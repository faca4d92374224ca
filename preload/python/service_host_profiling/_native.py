"""Stands where an extension module would: libshp.so beside it is that module.

Not in the library itself, whose own importer makes `_native` out of a builtin.
"""

import sys

from ._library import open_native

sys.modules[__name__] = open_native(__name__)
