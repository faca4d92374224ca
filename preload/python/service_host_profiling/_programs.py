"""Console scripts of the installed package: the programs beside it."""

import os
import sys


def _become(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {program}: {error.strerror}")


def shp():
    _become("shp")


def shpd():
    _become("shpd")
