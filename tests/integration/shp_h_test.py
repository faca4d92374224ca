"""A C and a C++ program that use shp.h, with and without libshp.so."""

import json

from shp_testing import (Case, HostFile, clean_environment, compile_program,
                         host_files, main, published, run, traced_environment)

C_PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "shp.h"

static void* work(void* unused) {
  (void)unused;
  for (int i = 0; i < 100; ++i) {
    shp_span_end(shp_span_start("in a thread"));
  }
  return NULL;
}

int main(int argc, char** argv) {
  printf("enabled %d\n", shp_is_enabled());
  if (argc > 1) {
    printf("start %d\n", shp_start(argv[1], "c-session"));
  }
  shp_span outer = shp_span_start("outer");
  shp_span json = shp_span_start_json("json", "{\"a\": [1, 2.5, null]}");
  const struct shp_arg args[] = {{"n", SHP_I64, {.i64 = -7}},
                                 {"x", SHP_F64, {.f64 = 0.5}},
                                 {"b", SHP_BOOL, {.boolean = 1}},
                                 {"s", SHP_STR, {.str = "a\"b\\\n"}}};
  shp_span typed = shp_span_start_args("typed", args, 4);
  shp_span bad = shp_span_start_json("bad", "{not json");
  shp_span_end(bad);
  shp_span_end(outer); /* not nested */
  shp_span_end(outer); /* an ended id */
  shp_span_end(-1);
  shp_span_end(1234567890123456789);
  shp_span_end(typed);
  shp_span_end(json);
  shp_span_end(shp_span_start(""));
  shp_span_end(shp_span_start("gr\xc3\xbc\xc3\x9f"));
  shp_span open = shp_span_start("never ended");
  (void)open;
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
  if (argc > 1) {
    char path[4096] = "";
    printf("stop %d\n", shp_stop(path, sizeof path));
    printf("path %s\n", path);
    printf("again %d\n", shp_stop(NULL, 0) < 0);
  }
  return 0;
}
"""

CXX_PROGRAM = r"""
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "shp.h"

static void thrower() {
  shp::Span span("throws");
  throw std::runtime_error("through a span");
}

int main(int argc, char** argv) {
  if (argc > 1 && shp_start(argv[1], nullptr) != 0) {
    std::puts("no session");
  }
  for (int i = 0; i < 3; ++i) {
    SHP_SPAN("macro");
  }
  {
    SHP_SPAN("macro with args", {{"i", 1}, {"s", std::string("text")}});
  }
  try {
    thrower();
  } catch (const std::runtime_error&) {
  }
  {
    shp::Span moved(std::string("by string"));
    moved.end("{\"late\":true}");
    moved.end();
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 1000; ++i) {
        shp::Span span("thread", {{"t", t}});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (argc > 1) {
    char path[4096];
    if (shp_stop(path, sizeof path) == 0) std::puts(path);
  }
}
"""


class CProgram(Case):
    def setUp(self):
        super().setUp()
        self.program = compile_program(self.script(C_PROGRAM, "program.c"),
                                       self.folder / "program", "-pthread",
                                       "-ldl")

    def test_runs_unchanged_without_the_library(self):
        result = run([self.program, self.out], env=clean_environment())
        self.assert_ok(result)
        self.assertIn("enabled 0\n", result.stdout)
        self.assertRegex(result.stdout, r"start -\d+\n")
        self.assertEqual(result.stderr, "")
        self.assertFalse(self.out.exists())

    def test_records_what_it_ended(self):
        daemon = self.daemon()
        result = run([self.program, self.out], env=traced_environment(daemon))
        self.assert_ok(result)
        self.assertEqual(result.stderr, "")
        self.assertIn("enabled 1\nstart 0\n", result.stdout)
        self.assertIn("stop 0\n", result.stdout)
        self.assertIn("again 1\n", result.stdout)
        [file] = host_files(self.out)
        self.assertIn(f"path {file.path}\n", result.stdout)
        self.check(file)

    def check(self, file):
        self.assertEqual(file.metadata["session_id"], "c-session")
        self.assertEqual(file.metadata["end_reason"], "stop")
        self.assertTrue(file.metadata["complete"])
        self.assertEqual(file.metadata["dropped"]["unfinished"], 1)
        self.assertEqual(file.metadata["dropped"]["bad_name"], 1)
        self.assertEqual(file.metadata["bad_args"], 1)
        self.assertEqual(file.count("in a thread"), 100)
        self.assertEqual(len(file.spans), 105)
        self.assertEqual(len(file.tids()), 2)
        by_name = {span["name"]: span for span in file.spans}
        self.assertEqual(by_name["json"]["args"], {"a": [1, 2.5, None]})
        self.assertEqual(by_name["typed"]["args"],
                         {"n": -7, "x": 0.5, "b": True, "s": "a\"b\\\n"})
        self.assertEqual(by_name["bad"]["args"], {})
        self.assertIn("gr\u00fc\u00df", by_name)
        outer, typed = by_name["outer"], by_name["typed"]
        self.assertLess(outer["start_ns"], typed["start_ns"])
        self.assertLess(outer["start_ns"] + outer["duration_ns"],
                        typed["start_ns"] + typed["duration_ns"])

    def test_records_by_the_environment_alone(self):
        daemon = self.daemon()
        result = run([self.program], env=traced_environment(
            daemon, SHP_OUTPUT_DIR=self.out))
        self.assert_ok(result)
        [file] = published(self.out)
        self.assertEqual(file.metadata["end_reason"], "exit")
        self.assertTrue(file.metadata["complete"])
        self.assertEqual(file.count("in a thread"), 100)
        self.assertEqual([s["name"] for s in file.open_spans], ["never ended"])


class CxxProgram(Case):
    def setUp(self):
        super().setUp()
        self.program = compile_program(self.script(CXX_PROGRAM, "program.cpp"),
                                       self.folder / "program", "-pthread",
                                       "-ldl", cxx=True)

    def test_runs_unchanged_without_the_library(self):
        result = run([self.program], env=clean_environment())
        self.assert_ok(result)
        self.assertEqual(result.stdout + result.stderr, "")

    def test_records_by_scope(self):
        daemon = self.daemon()
        result = run([self.program, self.out], env=traced_environment(daemon))
        self.assert_ok(result)
        file = HostFile(result.stdout.strip())
        self.assertEqual(file.metadata["dropped_spans"], 0)
        self.assertEqual(file.count("macro"), 3)
        self.assertEqual(file.count("throws"), 1)
        self.assertEqual(file.count("thread"), 8000)
        args = {json.dumps(s["args"], sort_keys=True) for s in file.spans
                if s["name"] != "thread"}
        self.assertEqual(args, {"{}", '{"i": 1, "s": "text"}',
                                '{"late": true}'})
        of_threads = {(s["tid"], s["args"]["t"]) for s in file.spans
                      if s["name"] == "thread"}
        self.assertEqual(len(of_threads), 8)


if __name__ == "__main__":
    main()
