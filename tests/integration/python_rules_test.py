"""The predecessor's behaviours, rule by rule (python_rules.py): ours preloaded,
ours installed and not preloaded, and the predecessor, on every CPython here."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import python_rules  # noqa: E402
from shp_pythons import installed_package, pythons  # noqa: E402
from shp_testing import (Case, clean_environment, main, predecessor,  # noqa: E402
                         run, traced_environment)

RUNNER = pathlib.Path(python_rules.__file__)


class Rules(Case):
    def outcomes(self, python, label, environment):
        place = self.folder / label
        place.mkdir()
        result = run([python, RUNNER, place], env=environment, seconds=120)
        self.assert_ok(result)
        return json.loads(result.stdout)

    def compare(self, label, outcomes, theirs=False):
        """One failure that lists every rule that came out differently."""
        wrong = []
        for sentence, (_, expected, other) in python_rules.RULES.items():
            if theirs and other == python_rules.ABSENT:
                continue
            if theirs and other != python_rules.SAME:
                expected = other
            expected = json.loads(json.dumps(expected))
            if outcomes[sentence] != expected:
                wrong.append(f"{sentence}:\n  expected {expected!r}\n"
                             f"  got      {outcomes[sentence]}")
        print(f"{label}: {len(outcomes)} rules, {len(wrong)} wrong",
              file=sys.stderr)
        if wrong:
            self.fail(f"{label}\n" + "\n".join(wrong))

    def test_ours_preloaded(self):
        daemon = self.daemon()
        for version, python in pythons().items():
            label = "preloaded-%d.%d" % version
            with self.subTest(label):
                self.compare(label, self.outcomes(
                    python, label, traced_environment(daemon)))

    def test_ours_installed(self):
        daemon = self.daemon()
        site = installed_package(self.folder)
        for version, python in pythons().items():
            label = "installed-%d.%d" % version
            with self.subTest(label):
                self.compare(label, self.outcomes(
                    python, label, clean_environment(
                        PYTHONPATH=site, SHP_SOCKET=daemon.socket,
                        HOST_SERVICE_PROFILER_ENABLE=1)))

    def test_the_predecessor(self):
        package = predecessor()
        for version, python in pythons().items():
            if version < (3, 10):
                continue  # its integrations need 3.10
            label = "predecessor-%d.%d" % version
            with self.subTest(label):
                self.compare(label, self.outcomes(
                    python, label, clean_environment(
                        PYTHONPATH=package,
                        HOST_SERVICE_PROFILER_ENABLE=1)), theirs=True)

    def test_there_are_enough_rules(self):
        self.assertGreaterEqual(len(python_rules.RULES), 60)


OFF = r"""
import json, os, sys
import service_host_profiling as shp
import service_host_profiling.collector as collector
def f(): return 5
binding = shp.attach_torch_profiler(sys.argv[1])
capture = shp.attach_sglang(sys.argv[1], profile_id="p")
print(json.dumps([
    shp.is_enabled(), shp.start(sys.argv[1]), shp.stop(),
    shp.span_start("s", {1, 2}), shp.span_end(-1), shp.span_end("x"),
    shp.profile("p")(f) is f, collector._active, binding.start(),
    binding.archive("/nowhere"), capture.start(), capture.stop(),
    capture.archive("/nowhere"), os.path.exists(sys.argv[1]),
]))
"""
ALL_OFF = [False, None, None, -1, None, None, True, None, None, None, None,
           None, None, False]


class OffSwitch(Case):
    def outcome(self, environment, python):
        result = run([python, self.script(OFF), self.out], env=environment)
        self.assert_ok(result)
        return json.loads(result.stdout)

    def test_preloaded_and_zero(self):
        environment = traced_environment(HOST_SERVICE_PROFILER_ENABLE=0)
        for version, python in pythons().items():
            with self.subTest(version):
                self.assertEqual(self.outcome(environment, python), ALL_OFF)

    def test_installed_and_not_one(self):
        site = installed_package(self.folder)
        for version, python in pythons().items():
            for extra in ({}, {"HOST_SERVICE_PROFILER_ENABLE": "0"},
                          {"HOST_SERVICE_PROFILER_ENABLE": "yes"}):
                with self.subTest(version, **extra):
                    self.assertEqual(self.outcome(
                        clean_environment(PYTHONPATH=site, **extra), python),
                        ALL_OFF)

    def test_the_predecessor(self):
        environment = clean_environment(PYTHONPATH=predecessor())
        for version, python in pythons().items():
            if version >= (3, 10):
                with self.subTest(version):
                    self.assertEqual(self.outcome(environment, python),
                                     ALL_OFF)

    def test_a_span_that_is_off_is_a_context_manager_and_decorator(self):
        script = self.script("import service_host_profiling as shp\n"
                             "with shp.span('s', {'a': 1}) as span:\n"
                             "    span.attrs = {}\n"
                             "def f(): pass\n"
                             "print(shp.span('s')(f) is f)\n", "span.py")
        result = run([sys.executable, script], env=traced_environment(
            HOST_SERVICE_PROFILER_ENABLE=0))
        self.assertEqual(result.stdout, "True\n", result.stderr)


if __name__ == "__main__":
    main()
