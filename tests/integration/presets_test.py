"""The presets of SHP_TRACE against the releases that they are for: the checked-in
table tests/golden/preset_names.json, made by tests/support/preset_names.py from
wheels, and those wheels where SHP_TEST_WHEELS names a folder of them. The
preset `torch` against the Torch of this machine."""

import json
import os
import pathlib
import unittest

from preset_names import PRESETS, lines_of, names_in, row
from shp_testing import (Case, LIBRARY, SOURCE, main, run,
                         torch_python, traced_environment)

TABLE = json.loads((SOURCE / "tests" / "golden" / "preset_names.json")
                   .read_text(encoding="utf-8"))


def releases_of(preset):
    return [(name, names) for name, names in TABLE.items()
            if name.split()[0] == preset]


class Table(unittest.TestCase):
    def test_every_line_of_a_preset_is_in_some_release(self):
        for preset in ("sglang", "vllm"):
            releases = releases_of(preset)
            self.assertGreaterEqual(len(releases), 3)
            for target, optional in lines_of(preset):
                has = [name for name, names in releases if names[target]]
                self.assertTrue(has, target)
                # Those without `?` are in all of them, the others are not.
                self.assertEqual(len(has) < len(releases), optional,
                                 f"{target}: {has}")

    def test_the_table_has_these_lines_and_no_others(self):
        for name, names in TABLE.items():
            self.assertEqual(set(names),
                             {t for t, _ in lines_of(name.split()[0])}, name)

    def test_the_table_is_what_the_wheels_say(self):
        folder = os.environ.get("SHP_TEST_WHEELS")
        if not folder:
            self.skipTest("no wheels (set SHP_TEST_WHEELS)")
        for wheel in pathlib.Path(folder).glob("*.whl"):
            if wheel.name.split("-")[0] in ("sglang", "vllm"):
                release, names = row(wheel)
                self.assertEqual(TABLE[release], names, release)

    def test_names_are_found_as_text(self):
        self.assertEqual(
            names_in("def a(): pass\nclass B:\n  def m(self): pass\n"
                     "class C(B):\n  if x:\n    async def n(self): pass\n"
                     "  else:\n    def o(self): pass\n"),
            {"a", "B.m", "C.m", "C.n", "C.o"})


class Presets(Case):
    needs = (LIBRARY,)

    def test_each_ships_and_has_no_fault(self):
        names = sorted(path.stem for path in PRESETS.glob("*.txt"))
        self.assertEqual(names, ["sglang", "torch", "vllm"])
        result = run(["python3", "-c", "import json"], env=traced_environment(
            SHP_LOG=1, SHP_TRACE=",".join(names), SHP_NO_SPAWN=1))
        self.assertEqual(result.stderr, "")

    def test_torch_has_what_its_preset_names(self):
        python = torch_python()
        program = ("import torch, torch.distributed.checkpoint\n"
                   "import torch.utils.data, torch.nn.utils, torch.optim\n"
                   "import torch.distributed.fsdp, torch.nn.parallel\n")
        result = run([python, "-c", program], seconds=120,
                     env=traced_environment(SHP_LOG=1, SHP_TRACE="torch",
                                            SHP_NO_SPAWN=1))
        self.assert_ok(result)
        self.assertEqual([line for line in result.stderr.splitlines()
                          if line.startswith("libshp")], [])


if __name__ == "__main__":
    main()
