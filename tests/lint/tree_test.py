"""Rules of the tree that a reader can rely on: who includes whom, sizes, words.

Works on the files that git tracks, or on all of them in an unpacked archive.
"""

import pathlib
import re
import shutil
import subprocess
import unittest

from shp_testing import SOURCE, main

CXX = (".cpp", ".h", ".c")
CODE = CXX + (".py", ".sh", ".pyi")
TEXT = CODE + (".md", ".build", ".txt", ".yml", ".toml", ".map", ".service",
               ".socket", "Makefile", "run")

# May be longer than 400 lines: contracts whose prose is the specification.
# Past 400 lines: two contracts and a table of rules, which are one thing each;
# the last wants to be split where its next change cuts it.
LONG = {"common/shm/arena_abi.h", "preload/shp.h",
        "tests/integration/python_rules.py"}

# Folder: the folders that its includes may come from.
MAY_INCLUDE = {
    "common/base": {"common/base"},
    "preload": {"preload", "common/base", "common/shm", "common/protocol"},
    "daemon": {"daemon", "common"},
    "cli": {"cli", "common"},
    "common": {"common"},
}

# What an injected library must not do: end, print, change the program's signal
# state, or start threads. log.cpp is the one place that writes, when asked to.
BANNED_IN_PRELOAD = re.compile(
    r"\b(abort|exit|assert|printf|fprintf|puts|perror|system|popen|"
    r"pthread_create|std::thread|std::cout|std::cerr|setenv|putenv|"
    r"unsetenv|atexit)\s*[(;<.]|#include <(iostream|thread|spdlog|fmt)")
# The variables that annotation libraries read, before main and when asked to.
SETS_VARIABLES = "preload/inject/environment.cpp:"
BANNED_EVERYWHERE = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|gets|tmpnam|mktemp|alloca|rand)\s*\(")

MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.}])/(work|root|home/\w+|opt/wheels)/")


def tracked():
    if shutil.which("git") and (SOURCE / ".git").exists():
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files"],
                                capture_output=True, text=True, check=True)
        names = listed.stdout.splitlines()
        return [n for n in names if (SOURCE / n).is_file()]
    return [str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*")
            if p.is_file() and not p.relative_to(SOURCE).parts[0].startswith(
                ("build", "."))]


def files(*endings):
    return [n for n in tracked() if n.endswith(endings)]


def read(name):
    return (SOURCE / name).read_text(encoding="utf-8", errors="replace")


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text,
                  flags=re.S)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    return re.sub(r"//[^\n]*", "", text)


def folder_of(name):
    """The most specific row of MAY_INCLUDE for a file."""
    rows = [r for r in MAY_INCLUDE if name.startswith(r + "/")]
    return max(rows, key=len, default=None)


class Includes(unittest.TestCase):
    def test_keep_the_parts_apart(self):
        wrong = []
        for name in files(*CXX):
            row = folder_of(name)
            if row is None:
                continue
            for line in re.findall(r'^\s*#include "([^"]+)"', read(name),
                                   re.M):
                if not any(line.startswith(allowed + "/")
                           for allowed in MAY_INCLUDE[row]):
                    wrong.append(f"{name}: {line}")
        self.assertEqual(wrong, [])

    def test_rapidjson_stays_in_sources(self):
        wrong = [n for n in files(".h") if "#include <rapidjson" in read(n)
                 and not n.startswith("tests/")]
        self.assertEqual(wrong, [])

    def test_writer_and_reader_of_a_format_do_not_know_each_other(self):
        pairs = [("line_writer", "line_reader"), ("ring_writer", "ring_reader")]
        wrong = []
        for name in files(*CXX):
            stem = pathlib.Path(name).stem
            for one, other in pairs + [(b, a) for a, b in pairs]:
                if (stem == one and f"/{other}.h" in read(name)
                        and not name.startswith("tests/")):
                    wrong.append(name)
        self.assertEqual(wrong, [])


class Calls(unittest.TestCase):
    def matches(self, pattern, names):
        found = []
        for name in names:
            text = without_comments(read(name))
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{name}:{number}: {line.strip()}")
        return found

    def test_that_end_or_disturb_a_program_are_not_in_what_is_injected(self):
        names = [n for n in files(*CXX) if n.startswith("preload/")]
        names += [n for n in files(*CXX) if n.startswith(
            ("common/base/", "common/shm/", "common/protocol/"))
            and not n.endswith("check.h")]
        found = [where for where in self.matches(BANNED_IN_PRELOAD, names)
                 if not (where.startswith(SETS_VARIABLES) and "setenv" in where)]
        self.assertEqual(found, [])

    def test_that_are_unsafe_are_nowhere(self):
        self.assertEqual(self.matches(BANNED_EVERYWHERE, files(*CXX)), [])


# What opens with a brace and is no function; a test case is a table of checks.
NO_BODY = re.compile(r"(namespace|extern|struct|class|enum|union|const|static "
                     r"const|constexpr|inline const|template|TEST_CASE|#|//)")


class Sizes(unittest.TestCase):
    def test_no_source_is_longer_than_400_lines(self):
        wrong = [(n, read(n).count("\n")) for n in files(*CXX, ".py")
                 if n not in LONG and read(n).count("\n") > 400]
        self.assertEqual(wrong, [])

    def test_main_is_a_table(self):
        wrong = [(n, read(n).count("\n")) for n in files("main.cpp")
                 if read(n).count("\n") > 40 and not n.startswith("tests/")]
        self.assertEqual(wrong, [])

    def test_no_function_is_longer_than_60_lines(self):
        if not shutil.which("clang-format"):
            self.skipTest("function ends are found by clang-format's layout")
        wrong = []
        for name in files(".cpp"):
            head, start = "", None
            for number, line in enumerate(read(name).splitlines(), 1):
                # Formatted code: what begins at column 0 names what opens by
                # the next "{" at a line's end, and "}" at column 0 closes it.
                if line.startswith("}"):
                    if start and number - start + 1 > 60:
                        wrong.append((name, start, number - start + 1))
                    head, start = "", None
                elif line and not line[0].isspace():
                    head = line
                if (line.endswith("{") and start is None and head
                        and not line.endswith("= {") and not NO_BODY.match(head)):
                    start = number
        self.assertEqual(wrong, [])


class Words(unittest.TestCase):
    def texts(self):
        return [n for n in files(*TEXT) if not n.startswith("tests/golden/")]

    def grep(self, pattern, names):
        return [f"{n}:{i}: {line.strip()[:100]}" for n in names
                for i, line in enumerate(read(n).splitlines(), 1)
                if pattern.search(line)]

    def test_no_marks_of_unfinished_work(self):
        self.assertEqual(self.grep(MARKS, self.texts()), [])

    def test_no_paths_of_one_machine(self):
        names = [n for n in self.texts() if n != "tests/lint/tree_test.py"]
        self.assertEqual(self.grep(MACHINE_PATHS, names), [])

    def test_lines_end_cleanly(self):
        wrong = [n for n in self.texts() if read(n) and (
            not read(n).endswith("\n") or "\r" in read(n)
            or re.search(r"[ \t]$", read(n), re.M))]
        self.assertEqual(wrong, [])

    def test_headers_say_what_they_are(self):
        wrong = []
        for name in files(".h"):
            first = read(name).lstrip()
            if not first.startswith(("//", "/*")):
                wrong.append(name)
        self.assertEqual(wrong, [])


class Format(unittest.TestCase):
    def test_is_clang_formats(self):
        program = shutil.which("clang-format")
        if not program:
            self.skipTest("clang-format is not here")
        version = subprocess.run([program, "--version"], capture_output=True,
                                 text=True, check=True).stdout
        major = int(re.search(r"version (\d+)", version)[1])
        if major not in (14, 15, 16):
            # Later releases lay some constructs out in another way.
            self.skipTest(f"the tree is laid out by clang-format 14, not "
                          f"{major}")
        names = [str(SOURCE / n) for n in files(*CXX)]
        result = subprocess.run([program, "--dry-run", "--Werror", *names],
                                capture_output=True, text=True)
        wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error",
                                      result.stderr, re.M)))
        self.assertEqual([str(pathlib.Path(n).relative_to(SOURCE))
                          for n in wrong], [])


if __name__ == "__main__":
    main()
