"""no_op_module.c, compiled for a Python: two functions that take their arguments
and do nothing, the floor of any call into C."""

import os
import subprocess

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "programs", "no_op_module.c")


def compile_no_op(python, folder):
    """The built module's path; None, and said, without that Python's headers."""
    asked = subprocess.run(
        [str(python), "-c", "import sysconfig as s; "
         "print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'))"],
        capture_output=True, text=True, check=True)
    include, suffix = asked.stdout.split()
    output = os.path.join(str(folder), "no_op" + suffix)
    built = subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-I", include,
                            SOURCE, "-o", output],
                           capture_output=True, text=True, check=False)
    if built.returncode:
        print(built.stderr.splitlines()[0])
        return None
    return output


def load_no_op(path):
    """The module; works under any Python."""
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location("no_op", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
