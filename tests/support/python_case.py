"""PythonCase: a program that every CPython of this machine runs under the preload."""

from shp_pythons import pythons
from shp_testing import Case, run, traced_environment


class PythonCase(Case):
    def setUp(self):
        super().setUp()
        self.running = self.daemon()

    def each(self, text, *arguments, seconds=120, **extra):
        """[(version, output folder, result)] of a program that every Python
        ran, to an exit status of 0."""
        program = self.script(text)
        outcomes = []
        for version, python in pythons().items():
            out = self.folder / ("out-%d.%d" % version)
            result = run([python, program, out, *arguments],
                         env=traced_environment(self.running, **extra),
                         seconds=seconds)
            self.assert_ok(result)
            outcomes.append((version, out, result))
        return outcomes
