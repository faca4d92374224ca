"""ITT tasks and mstx ranges of unchanged programs (SHP_INJECT=itt, mstx): from
copies of both written by hand against their binary interfaces and from Torch's
own copy of ITT; alone, and chained with another tool in both orders."""

import unittest

from shp_testing import (Case, LIBRARY, SOURCE, clean_environment,
                         compile_program, main, published, run, sanitizers,
                         torch_python, traced_environment)

PROGRAMS = SOURCE / "tests" / "support" / "programs"


@unittest.skipIf(sanitizers(), "the copies are not built with sanitizers")
class Chained(Case):
    """One program that holds a copy, and another tool's library for it."""

    source = tool_flag = None

    def setUp(self):
        super().setUp()
        self.program = compile_program(PROGRAMS / self.source,
                                       self.folder / "program", "-ldl")
        self.other = compile_program(PROGRAMS / self.source,
                                     self.folder / "other.so", "-shared",
                                     "-fPIC", self.tool_flag, "-ldl")
        self.log = self.folder / "other.log"
        self.shpd = self.daemon()

    def work(self, **more):
        result = run([self.program], env=traced_environment(
            self.shpd, SHP_OUTPUT_DIR=self.out, SHP_LOG=1, OTHER_LOG=self.log,
            **more))
        self.assert_ok(result)
        self.assertEqual(result.stderr, "")

    def rows(self):
        """(type, name, args) of what the host file holds."""
        [file] = published(self.out)
        self.assertEqual(file.metadata["dropped_spans"], 0)
        self.assertEqual(file.metadata["dropped_marks"], 0)
        return (sorted((s["name"], str(s["args"])) for s in file.spans),
                file.metadata["written_instants"],
                file.metadata["written_counters"])


class Itt(Chained):
    source, tool_flag = "itt_copy.c", "-DCOLLECTOR"
    DOMAIN = "{'domain': 'my.domain'}"
    SPANS = [("inner", DOMAIN), ("outer", DOMAIN), ("overlapped", DOMAIN),
             ("overlapped", DOMAIN)]
    SEEN = ["begin outer", "begin inner", "end my.domain", "end my.domain"]

    def test_tasks_markers_and_counters(self):
        self.work(SHP_INJECT="itt")
        self.assertEqual(self.rows(), (self.SPANS, 1, 1))

    def test_nothing_without_being_asked(self):
        self.work()
        self.assertFalse(self.out.exists())

    def test_who_was_there_first_stands_behind(self):
        self.work(SHP_INJECT="itt", INTEL_LIBITTNOTIFY64=self.other)
        # Another tool may have made the counters: they are left to it.
        self.assertEqual(self.rows(), (self.SPANS, 1, 0))
        self.assertEqual(self.log.read_text().splitlines(), self.SEEN)

    def test_another_tool_may_stand_before(self):
        self.work(INTEL_LIBITTNOTIFY64=self.other, OTHER_NEXT=LIBRARY)
        self.assertEqual(self.rows(), (self.SPANS, 1, 1))
        self.assertEqual(self.log.read_text().splitlines(), self.SEEN)


class Mstx(Chained):
    source, tool_flag = "mstx_copy.c", "-DINJECTION"
    SPANS = [("in domain", "{'domain': 'hccl'}"), ("range", "{}")]
    SEEN = ["mark m", "start range"]

    def seen(self):
        return self.log.read_text().splitlines()

    def test_a_preload_is_enough(self):
        self.work(SHP_INJECT="mstx")
        self.assertEqual(self.rows(), (self.SPANS, 2, 0))

    def test_nothing_without_being_asked(self):
        self.work()
        self.assertFalse(self.out.exists())

    def test_another_that_is_preloaded_is_not_hidden(self):
        for asked, recorded in (("nvtx", False), ("mstx", True)):
            environment = traced_environment(
                self.shpd, SHP_OUTPUT_DIR=self.out, OTHER_LOG=self.log,
                SHP_INJECT=asked)
            environment["LD_PRELOAD"] += f":{self.other}"
            self.assert_ok(run([self.program], env=environment))
            self.assertEqual(self.seen(), [*self.SEEN, "end own id"])
            self.log.unlink()
            self.assertEqual(self.out.exists(), recorded)
        self.assertEqual(self.rows(), (self.SPANS, 2, 0))

    def test_who_was_named_first_stands_behind(self):
        self.work(SHP_INJECT="mstx", MSTX_INJECTION_PATH=self.other)
        self.assertEqual(self.rows(), (self.SPANS, 2, 0))
        self.assertEqual(self.seen(), [*self.SEEN, "end own id"])

    def test_another_tool_may_stand_before(self):
        environment = traced_environment(
            self.shpd, SHP_OUTPUT_DIR=self.out, OTHER_LOG=self.log,
            OTHER_NEXT=LIBRARY)
        environment["LD_PRELOAD"] = f"{self.other}:{LIBRARY}"
        environment["SHP_INJECT"] = "mstx"
        self.assert_ok(run([self.program], env=environment))
        self.assertEqual(self.rows(), (self.SPANS, 2, 0))
        self.assertEqual(self.seen(), [*self.SEEN, "end id"])


class Torch(Case):
    def test_its_own_ranges_and_operators(self):
        python = torch_python()
        program = self.script(
            "import torch\n"
            "from torch.profiler import itt\n"
            "itt.range_push('pushed'); itt.mark('marked'); itt.range_pop()\n"
            "with torch.autograd.profiler.emit_itt():\n"
            "    (torch.ones(4, 4) @ torch.ones(4, 4)).sum()\n")
        self.assert_ok(run([python, program], seconds=120,
                           env=clean_environment()))
        self.assert_ok(run([python, program], seconds=120,
                           env=traced_environment(
                               self.daemon(), SHP_OUTPUT_DIR=self.out,
                               SHP_INJECT="itt")))
        [file] = [f for f in published(self.out) if f.count("pushed")]
        by_name = {span["name"]: span for span in file.spans}
        self.assertEqual(by_name["pushed"]["args"], {"domain": "PyTorch"})
        self.assertIn("marked", by_name)
        self.assertTrue([name for name in by_name if "matmul" in name])


if __name__ == "__main__":
    main()
