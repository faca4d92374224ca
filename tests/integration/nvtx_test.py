"""NVTX ranges, marks and domains of unchanged programs (SHP_INJECT=nvtx): from
copies of NVTX written by hand against its binary interface, from a program with
NVIDIA's headers and from the `nvtx` package where these are here
(SHP_TEST_NVTX_INCLUDE, SHP_TEST_NVTX_PYTHON: folders); alone, and chained with
another tool's injection in both orders."""

import os
import pathlib
import unittest

from shp_pythons import pythons
from shp_testing import (Case, LIBRARY, SHP, SOURCE, clean_environment,
                         compile_program, main, published, run, sanitizers,
                         traced_environment)

PROGRAMS = SOURCE / "tests" / "support" / "programs"

# Two copies of NVTX in one process, one of them twice.
TWO_COPIES = r"""
#include <dlfcn.h>
#include <stdint.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    void* copy = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    ((void (*)(const char*))(uintptr_t)dlsym(copy, "nvtx_copy_work"))(
        i == 1 ? "one" : "two");
  }
  return 0;
}
"""

OF_ONE_COPY = {("registered", '{"domain": "a domain", "payload": 7}'),
               ("start and end", "{}")}
SEEN = ["domain a domain", "string registered", "domain push registered",
        "start start and end", "end own id", "pop "]


def spans_of(file):
    return {(s["name"], str(s["args"]).replace("'", '"')) for s in file.spans}


@unittest.skipIf(sanitizers(), "the copies are not built with sanitizers")
class Copies(Case):
    def setUp(self):
        super().setUp()
        self.program = compile_program(self.script(TWO_COPIES, "main.c"),
                                       self.folder / "main", "-ldl")
        self.copies = [self.shared("nvtx_copy", f"copy{i}.so")
                       for i in (1, 2)]
        self.other = self.shared("other_injection", "other.so")
        self.log = self.folder / "other.log"
        self.shpd = self.daemon()

    def shared(self, source, name):
        return compile_program(PROGRAMS / f"{source}.c", self.folder / name,
                               "-shared", "-fPIC", "-ldl")

    def work(self, **more):
        result = run([self.program, *self.copies], env=traced_environment(
            self.shpd, SHP_OUTPUT_DIR=self.out, SHP_LOG=1, OTHER_LOG=self.log,
            **more))
        self.assert_ok(result)
        return result

    def check_ours(self):
        [file] = published(self.out)
        self.assertEqual(spans_of(file),
                         {("one", "{}"), ("two", "{}"), *OF_ONE_COPY})
        self.assertEqual(len(file.spans), 6)
        self.assertEqual(file.metadata["dropped_spans"], 0)
        self.assertEqual(file.metadata["written_instants"], 2)

    def check_other(self, seen=SEEN):
        self.assertEqual(self.log.read_text().splitlines(),
                         ["begin ", "push one", *seen,
                          "begin ", "push two", *seen])

    def test_every_copy_is_recorded(self):
        result = self.work(SHP_INJECT="nvtx")
        self.assertEqual(result.stderr, "")
        self.check_ours()

    def test_nothing_without_being_asked(self):
        self.work()
        self.assertFalse(self.out.exists())
        self.work(SHP_INJECT="itt")
        self.assertFalse(self.out.exists())

    def test_who_was_there_first_stands_behind(self):
        result = self.work(SHP_INJECT="itt,nvtx",
                           NVTX_INJECTION64_PATH=self.other)
        self.assertEqual(result.stderr, "")
        self.check_ours()
        self.check_other()

    def test_another_tool_may_stand_before(self):
        self.work(NVTX_INJECTION64_PATH=self.other, OTHER_NEXT=LIBRARY)
        self.check_ours()
        self.check_other([s.replace("domain push registered",
                                    "domain push handed on")
                          .replace("end own id", "end id") for s in SEEN])

    def test_the_library_may_be_named_without_a_preload(self):
        environment = traced_environment(
            self.shpd, SHP_OUTPUT_DIR=self.out, NVTX_INJECTION64_PATH=LIBRARY)
        del environment["LD_PRELOAD"]
        self.assert_ok(run([self.program, *self.copies], env=environment))
        self.check_ours()

    def test_children_are_chained_as_their_parents(self):
        shell = ["/bin/sh", "-c", '"$0" "$@"; true', self.program,
                 *self.copies]
        self.assert_ok(run(shell, env=traced_environment(
            self.shpd, SHP_OUTPUT_DIR=self.out, SHP_INJECT="nvtx",
            OTHER_LOG=self.log, NVTX_INJECTION64_PATH=self.other)))
        self.check_ours()
        self.check_other()

    def test_an_injection_that_does_not_begin_is_a_line(self):
        result = self.work(SHP_INJECT="nvtx", OTHER_FAULT="refuse",
                           NVTX_INJECTION64_PATH=self.other)
        self.assertIn("SHP_NEXT_NVTX: the injection refused to begin",
                      result.stderr)
        self.check_ours()

    def test_an_injection_that_is_not_there_is_a_line(self):
        result = self.work(SHP_INJECT="nvtx",
                           NVTX_INJECTION64_PATH="/nowhere/tool.so")
        self.assertIn("SHP_NEXT_NVTX: /nowhere/tool.so: cannot open",
                      result.stderr)
        self.check_ours()

    def test_a_file_that_is_no_injection_is_a_line(self):
        result = self.work(SHP_INJECT="nvtx",
                           NVTX_INJECTION64_PATH=self.copies[0])
        self.assertIn("undefined symbol: InitializeInjectionNvtx2",
                      result.stderr)
        self.check_ours()


    def test_by_shp_run(self):
        result = run([SHP, "run", "-q", "-o", self.out, "--inject", "nvtx,itt",
                      "--", self.program, *self.copies],
                     env=clean_environment())
        self.assert_ok(result)
        self.check_ours()
        wrong = run([SHP, "run", "--inject", "nvtz", "true"],
                    env=clean_environment())
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--inject: nvtz not in {nvtx,itt,mstx}", wrong.stderr)


HEADERS_PROGRAM = r"""
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <string.h>
static nvtxRangeId_t crossing;
static void* ender(void* u){ nvtxRangeEnd(crossing); return u; }
int main(void){
  nvtxRangePushW(L"wide gr\u00fc\u00df \U0001F600");
  nvtxRangePushA("outer");
  nvtxEventAttributes_t e; memset(&e, 0, sizeof e);
  e.version = NVTX_VERSION; e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.category = 7; e.colorType = NVTX_COLOR_ARGB; e.color = 0xff00ff00;
  e.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE; e.payload.dValue = 2.5;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII; e.message.ascii = "with all";
  nvtxNameCategoryA(7, "seven");
  nvtxRangePushEx(&e); nvtxRangePop();
  nvtxRangePop();
  nvtxRangePop();
  nvtxDomainHandle_t d = nvtxDomainCreateA("NCCL");
  nvtxStringHandle_t s = nvtxDomainRegisterStringA(d, "registered");
  nvtxEventAttributes_t r; memset(&r, 0, sizeof r);
  r.version = NVTX_VERSION; r.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  r.messageType = NVTX_MESSAGE_TYPE_REGISTERED; r.message.registered = s;
  r.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64; r.payload.ullValue = 3;
  nvtxDomainRangePushEx(d, &r);
  nvtxRangePushA("other domain");   /* interleaved domains */
  nvtxDomainRangePop(d);
  nvtxRangePop();
  nvtxRangeId_t id = nvtxDomainRangeStartEx(d, &r); nvtxDomainRangeEnd(d, id);
  crossing = nvtxRangeStartA("crossing");
  pthread_t t; pthread_create(&t, 0, ender, 0); pthread_join(t, 0);
  nvtxMarkA("mark"); nvtxMarkW(L"wide mark"); nvtxDomainMarkEx(d, &r);
  nvtxRangePop(); /* one too many */
  nvtxDomainDestroy(d);
  return 0;
}
"""


class Real(Case):
    def include(self):
        folder = os.environ.get("SHP_TEST_NVTX_INCLUDE", "/usr/include")
        if not (pathlib.Path(folder) / "nvtx3" / "nvToolsExt.h").exists():
            self.skipTest("no NVTX headers (set SHP_TEST_NVTX_INCLUDE)")
        return folder

    def test_a_program_with_the_headers(self):
        program = compile_program(
            self.script(HEADERS_PROGRAM, "program.c"), self.folder / "program",
            f"-I{self.include()}", "-ldl", "-pthread")
        self.assert_ok(run([program], env=clean_environment()))
        self.assert_ok(run([program], env=traced_environment(
            self.daemon(), SHP_OUTPUT_DIR=self.out, SHP_INJECT="nvtx")))
        [file] = published(self.out)
        by_name = {span["name"]: span for span in file.spans}
        self.assertEqual(by_name["with all"]["args"], {
            "category": "seven", "color": "#ff00ff00", "payload": 2.5})
        self.assertEqual(by_name["registered"]["args"],
                         {"domain": "NCCL", "payload": 3})
        self.assertIn("wide gr\u00fc\u00df \U0001f600", by_name)
        self.assertEqual(file.count("registered"), 2)
        self.assertEqual(file.metadata["written_instants"], 3)
        self.assertNotEqual(by_name["crossing"]["tid"],
                            file.metadata["pid"])
        # Domains' ranges need not nest in each other's.
        self.assertLess(by_name["registered"]["start_ns"],
                        by_name["other domain"]["start_ns"] + 10**9)

    def test_the_nvtx_package(self):
        folder = os.environ.get("SHP_TEST_NVTX_PYTHON")
        python = pythons().get((3, 11))
        if not folder or not python:
            self.skipTest("no nvtx package (set SHP_TEST_NVTX_PYTHON)")
        program = self.script(
            "import nvtx\n"
            "with nvtx.annotate('block', color='green', domain='mine',"
            " category='cat'): pass\n"
            "@nvtx.annotate()\n"
            "def decorated(): pass\n"
            "decorated()\n"
            "nvtx.mark('a mark')\n"
            "nvtx.end_range(nvtx.start_range('free'))\n"
            "with nvtx.annotate('paid', payload=5): pass\n")
        self.assert_ok(run([python, program], env=traced_environment(
            self.daemon(), SHP_OUTPUT_DIR=self.out, SHP_INJECT="nvtx",
            PYTHONPATH=folder)))
        [file] = published(self.out)
        args = {span["name"]: span["args"] for span in file.spans}
        self.assertEqual(set(args), {"block", "decorated", "free", "paid"})
        self.assertEqual(args["block"], {"domain": "mine", "category": "cat",
                                         "color": "#00008000"})
        self.assertEqual(args["paid"]["payload"], 5)
        self.assertEqual(file.metadata["written_instants"], 1)


if __name__ == "__main__":
    main()
