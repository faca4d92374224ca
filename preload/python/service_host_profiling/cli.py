"""`python -m service_host_profiling …`: the program shp, with the same words."""

import subprocess
import sys

from ._library import program_path


def main(argv=None):
    """Run shp; its exit status, 128 and the signal's number if one ended it."""
    program = program_path()
    if program is None:
        print("service-host-profiling: the program shp is neither beside "
              "libshp.so nor on PATH", file=sys.stderr)
        return 1
    words = sys.argv[1:] if argv is None else argv
    status = subprocess.call([program, *map(str, words)])
    return status if status >= 0 else 128 - status
