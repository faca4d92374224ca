"""What libshp.so brings into somebody else's process, read from the binary."""

import re
import shutil
import subprocess
import unittest

from shp_testing import LIBRARY, main, sanitizers

# glibc's own parts: all there in any process, merged into libc since 2.34.
MAY_NEED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0",
            "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEWEST_GLIBC = (2, 34)
MAY_EXPORT = re.compile(r"^(shp_\w+|PyInit_\w+|InitializeInjection\w*|"
                        r"InitInjectionMstx|__itt_api_init)$")

# Calls that could end, silence or reshape the program that we are in.
MUST_NOT_CALL = {"abort", "exit", "pthread_create", "signal", "system",
                 "popen", "unsetenv", "putenv", "fork", "vfork",
                 "setrlimit", "shm_open", "atexit", "_exit_group", "usleep",
                 "sleep"}
# setenv: by the constructor only, where SHP_INJECT asks for it (tree_test).
MAX_STATIC_TLS = 64


def output(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not LIBRARY.exists():
            raise unittest.SkipTest("libshp.so is not built here")
        if not shutil.which("readelf"):
            raise unittest.SkipTest("readelf is not here")
        if sanitizers():
            raise unittest.SkipTest("sanitizers add symbols of their own")
        cls.symbols = [line.split() for line in output(
            "readelf", "--dyn-syms", "-W", LIBRARY).splitlines()
            if re.match(r"\s*\d+:", line)]

    def names(self, defined):
        found = set()
        for fields in self.symbols:
            if len(fields) >= 8 and (fields[6] != "UND") == defined:
                found.add(fields[7].split("@")[0])
        return found

    def test_needs_only_the_c_library(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]",
                                output("readelf", "-dW", LIBRARY)))
        self.assertEqual(needed - MAY_NEED, set())

    def test_exports_only_its_api(self):
        wrong = {n for n in self.names(True) if not MAY_EXPORT.match(n)}
        self.assertEqual(wrong - {"SHP_1"}, set())
        self.assertIn("shp_api", self.names(True))

    def test_runs_with_glibc_2_34(self):
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)",
                              output("readelf", "-VW", LIBRARY))
        newest = max((int(a), int(b)) for a, b in versions)
        self.assertLessEqual(newest, NEWEST_GLIBC)

    def test_asks_for_no_other_runtime(self):
        wrong = re.findall(r"(?:GLIBCXX|CXXABI|GCC)_[\d.]+",
                           output("readelf", "-VW", LIBRARY))
        self.assertEqual(wrong, [])

    def test_does_not_call_what_disturbs_a_program(self):
        # abort comes with the static C++ runtime's terminate(); ours does not
        # call it, which tree_test checks in the sources.
        wrong = self.names(False) & MUST_NOT_CALL - {"abort"}
        self.assertEqual(wrong, set())

    def test_links_no_python(self):
        wrong = {n for n in self.names(False) if n.startswith(("Py", "_Py"))}
        self.assertEqual(wrong, set())

    def test_uses_little_static_tls(self):
        segments = re.findall(r"^\s*TLS\s+(?:0x\w+\s+){4}(0x\w+)",
                              output("readelf", "-lW", LIBRARY), re.M)
        self.assertLessEqual(sum(int(s, 16) for s in segments),
                             MAX_STATIC_TLS)

    def test_has_no_executable_stack_and_no_text_relocations(self):
        stack = re.search(r"GNU_STACK.*", output("readelf", "-lW", LIBRARY))[0]
        self.assertNotIn("RWE", stack)
        self.assertNotIn("TEXTREL", output("readelf", "-dW", LIBRARY))


if __name__ == "__main__":
    main()
