"""How the Python module inside libshp.so is imported, run with -m and installed."""

import os
import subprocess
import sys

from python_case import PythonCase
from shp_pythons import installed_package, pythons, static_python
from shp_testing import (BUILD, Case, HostFile, SHP, SOURCE, clean_environment,
                         host_files, main, run, sanitizers, traced_environment)


class Import(PythonCase):
    def test_nothing_happens_before_the_first_import(self):
        text = ("import sys\n"
                "assert not any('service_host' in m for m in sys.modules)\n"
                "assert not any('Embedded' in repr(f) for f in sys.meta_path)\n"
                "import threading\n"
                "print(threading.active_count(), "
                "len(__import__('os').listdir('/proc/self/task')))\n")
        for _, _, result in self.each(text):
            self.assertEqual(result.stdout, "1 1\n")

    def test_every_module_comes_out_of_the_library(self):
        text = """
import importlib, inspect, sys
names = ["", ".collector", ".cli", ".parser", ".integrations",
         ".integrations.torch", ".integrations.sglang", "._switch",
         "._python_collector", "._native"]
for name in names:
    module = importlib.import_module("service_host_profiling" + name)
    assert module.__spec__ is not None and module.__name__ in sys.modules, name
    if name != "._native" and name:
        assert "libshp.so" in module.__spec__.origin, module.__spec__
        assert inspect.getsource(module).startswith('\"\"\"'), name
import service_host_profiling.parser as parser
source = inspect.getsource(parser.open_host_file)
assert source.startswith("def open_host_file"), source
try:
    import service_host_profiling.absent
except ModuleNotFoundError as error:
    assert error.name == "service_host_profiling.absent"
else:
    raise AssertionError
print("fine")
"""
        for _, _, result in self.each(text):
            self.assertEqual(result.stdout, "fine\n")

    def test_it_is_imported_again_when_it_was_thrown_away(self):
        text = """
import sys
import service_host_profiling as first
first.start(sys.argv[1])
first.span_end(first.span_start("one", {"a": 1}))
for name in [m for m in sys.modules if m.startswith("service_host")]:
    del sys.modules[name]
import service_host_profiling as second
assert second is not first
second.span_end(second.span_start("two"))
print(second.stop())
import importlib
importlib.reload(second)
second.start(sys.argv[1]); print(second.stop())
"""
        for _, _, result in self.each(text):
            first, _ = result.stdout.splitlines()
            self.assertEqual(HostFile(first).names(), ["one", "two"])

    def test_the_interpreter_in_the_executable_too(self):
        python = static_python()
        if python is None:
            self.skipTest("no python3 of the distribution")
        result = run([python, "-c", "import service_host_profiling as s, sys\n"
                      "s.start(sys.argv[1]); s.span_end(s.span_start('x'))\n"
                      "print(s.stop())", self.out],
                     env=traced_environment(self.running))
        self.assert_ok(result)
        self.assertEqual(HostFile(result.stdout.strip()).names(), ["x"])

    def test_isolated_and_optimised_interpreters(self):
        for flags in (["-I"], ["-S"], ["-E", "-s"], ["-OO"], ["-X", "dev"],
                      ["-W", "error"], ["-B", "-u"]):
            with self.subTest(flags):
                result = run([sys.executable, *flags, "-c",
                              "import service_host_profiling as s, sys\n"
                              "s.start(sys.argv[1])\n"
                              "with s.span('x', {'a': 1}): pass\n"
                              "print(s.stop())", self.out],
                             env=traced_environment(self.running))
                self.assert_ok(result)
                self.assertEqual(result.stderr, "")
                self.assertEqual(HostFile(result.stdout.strip()).names(),
                                 ["x"])

    def test_a_sub_interpreter_is_refused_in_words(self):
        text = """
import service_host_profiling
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
script = '''
try:
    import service_host_profiling
except ImportError as error:
    text = str(error)
else:
    text = "imported"
open(%r, "w").write(text)
'''
import sys
path = sys.argv[1] + ".txt"
try:
    new = interpreters.create(**({"isolated": False}
                                 if sys.version_info < (3, 13) else {}))
    interpreters.run_string(new, script % path)
    interpreters.destroy(new)
    print(open(path).read())
except Exception as error:
    print("cannot", repr(error))
import service_host_profiling as shp
shp.start(sys.argv[1]); shp.span_end(shp.span_start("x")); shp.stop()
"""
        for version, out, result in self.each(text):
            if result.stdout.startswith("cannot"):
                continue
            self.assertIn("interpreter", result.stdout)
            self.assertEqual(host_files(out)[0].names(), ["x"])

    def test_an_embedded_interpreter_may_end_and_begin_again(self):
        # ctypes would need an interpreter; a C program does it.
        include = subprocess.run(
            [sys.executable, "-c", "import sysconfig as s; "
             "print(s.get_paths()['include'], s.get_config_var('LIBDIR'), "
             "s.get_config_var('LDVERSION'), "
             "s.get_config_var('Py_ENABLE_SHARED'))"],
            capture_output=True, text=True, check=True).stdout.split()
        if include[3] != "1" or not os.path.exists(include[0] + "/Python.h"):
            self.skipTest("no shared libpython with headers")
        source = self.script(r"""
#include <Python.h>
int main(void) {
  for (int i = 0; i < 3; ++i) {
    Py_Initialize();
    int bad = PyRun_SimpleString(
        "import service_host_profiling as s, os\n"
        "s.start(os.environ['OUT'])\n"
        "for i in range(100):\n"
        "  s.span_end(s.span_start('x', {'i': i}))\n"
        "left = s.span_start('left open', {'a': 1})\n"
        "s.stop()\n"
        "f = s.profile('p')(print)\n");
    if (bad || Py_FinalizeEx()) return 1;
  }
  return 0;
}
""", "embed.c")
        program = self.folder / "embed"
        built = run(["gcc", f"-I{include[0]}", source, "-o", program,
                     f"-L{include[1]}", f"-lpython{include[2]}",
                     f"-Wl,-rpath,{include[1]}"])
        self.assert_ok(built)
        home = os.path.dirname(os.path.dirname(sys.executable))
        result = run([program], env=traced_environment(
            self.running, OUT=self.out, PYTHONHOME=home))
        self.assert_ok(result)
        self.assertEqual([len(f.spans) for f in host_files(self.out)],
                         [100] * 3)


class CommandLine(Case):
    def test_dash_m_runs_shp_with_the_same_words(self):
        expected = run([SHP, "--help"], env=clean_environment()).stdout
        site = installed_package(self.folder)
        for version, python in pythons().items():
            for environment in (
                    traced_environment(),
                    traced_environment(HOST_SERVICE_PROFILER_ENABLE=0),
                    clean_environment(PYTHONPATH=site)):
                with self.subTest(version):
                    result = run([python, "-m", "service_host_profiling",
                                  "--help"], env=environment)
                    self.assert_ok(result)
                    self.assertEqual(result.stdout, expected)

    def test_the_exit_status_is_passed_on(self):
        for words, status in ((["nonsense"], 2), ([], 2),
                              (["export", "/absent.jsonl", "-o",
                                str(self.folder / "x.json")], 1),
                              (["run", "--", "sh", "-c", "exit 7"], 7)):
            with self.subTest(words):
                result = run([sys.executable, "-m", "service_host_profiling",
                              *words], env=traced_environment())
                self.assertEqual(result.returncode, status, result.stderr)

    def test_another_dash_m_is_nobodys_business(self):
        for python in pythons().values():
            result = run([python, "-m", "json.tool", "--help",
                          "service_host_profiling"], env=traced_environment())
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("json", result.stdout)


class Wheel(Case):
    def test_pip_installs_a_package_that_records_without_a_preload(self):
        if sanitizers():
            self.skipTest("not with sanitizers")
        venv = self.folder / "venv"
        self.assert_ok(run([sys.executable, "-m", "venv", venv]))
        python = venv / "bin" / "python"
        self.assert_ok(run(
            [python, "-m", "pip", "install", "--no-index", "-C",
             f"build-dir={BUILD}", SOURCE], env=clean_environment(),
            seconds=300))
        environment = clean_environment(
            HOST_SERVICE_PROFILER_ENABLE=1,
            SHP_SOCKET=self.folder / "own.sock")
        result = run([python, "-c", "import service_host_profiling as s, sys\n"
                      "import pickle; print(s.__file__)\n"
                      "s.start(sys.argv[1]); s.span_end(s.span_start('x'))\n"
                      "print(s.stop())\n"
                      "assert pickle.loads(pickle.dumps(s.span)) is s.span",
                      self.out], env=environment)
        self.assert_ok(result)
        place, path = result.stdout.split()
        self.assertIn(str(venv), place)
        self.assertEqual(HostFile(path).names(), ["x"])
        trace = self.folder / "trace.json"
        self.assert_ok(run([venv / "bin" / "shp", "export", path, "-o", trace],
                           env=clean_environment()))
        self.assertIn('"x"', trace.read_text())
        result = run([venv / "bin" / "shp", "run", "-o", self.folder / "run",
                      "--", python, "-c",
                      "import service_host_profiling as s\n"
                      "with s.span('under run'): pass"],
                     env=clean_environment())
        self.assert_ok(result)
        self.assertEqual(host_files(self.folder / "run")[0].names(),
                         ["under run"])


if __name__ == "__main__":
    main()
