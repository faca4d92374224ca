"""A program that records all the time, and the check that all of it is there."""

import re
import subprocess

from shp_testing import SLOW, compile_program, published

# Two threads: one of plain spans, one whose args are long enough to travel in
# pieces now and then; short-lived threads besides. Ends when stdin does.
PROGRAM = r"""
#define _GNU_SOURCE
#include <sys/select.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "shp.h"

static atomic_int ended;
static long counts[3];

static void* plain(void* unused) {
  (void)unused;
  char name[32];
  for (long n = 0; !ended; ++n) {
    snprintf(name, sizeof name, "p%ld", n % 1000);
    shp_span_end(shp_span_start(name));
    ++counts[0];
    usleep(20);
  }
  return NULL;
}

static void* rich(void* unused) {
  (void)unused;
  char* args = malloc(40000);
  for (long n = 0; !ended; ++n) {
    int at = snprintf(args, 64, "{\"n\":%ld", n);
    if (n % 50 == 0) {
      at += snprintf(args + at, 16, ",\"long\":\"");
      memset(args + at, 'x', 20000);
      at += 20000;
      at += snprintf(args + at, 4, "\"");
    }
    snprintf(args + at, 2, "}");
    shp_span_end(shp_span_start_json("rich", args));
    ++counts[1];
    usleep(200);
  }
  free(args);
  return NULL;
}

static void* brief(void* unused) {
  (void)unused;
  shp_span_end(shp_span_start("brief"));
  return NULL;
}

int main(int argc, char** argv) {
  (void)argc;
  if (shp_start(argv[1], "load") != 0) return 1;
  pthread_t one, two, three;
  pthread_create(&one, NULL, plain, NULL);
  pthread_create(&two, NULL, rich, NULL);
  while (1) {
    pthread_create(&three, NULL, brief, NULL);
    pthread_join(three, NULL);
    ++counts[2];
    fd_set set; FD_ZERO(&set); FD_SET(0, &set);
    struct timeval wait = {0, 15000};
    if (select(1, &set, NULL, NULL, &wait) > 0) break;
  }
  ended = 1;
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  char path[4096];
  const int status = shp_stop(path, sizeof path);
  printf("%d %ld %ld %ld\n", status, counts[0], counts[1], counts[2]);
  return status != 0;
}
"""

class Load:
    """The program, once for a test; `case` is its Case."""

    def __init__(self, case):
        self.case = case
        self.program = compile_program(case.script(PROGRAM, "load.c"),
                                       case.folder / "load", "-pthread",
                                       "-ldl")

    def start(self, command, environment=None):
        process = subprocess.Popen([str(word) for word in command],
                                   stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True,
                                   env=environment, start_new_session=True)
        for cleanup in (process.wait, process.kill, process.stdout.close):
            self.case.addCleanup(cleanup)
        return process

    def end(self, process):
        """Lets it stop; what it says that it recorded."""
        out, _ = process.communicate("", timeout=60 * SLOW)
        self.case.assertTrue(out, "the program died")
        status, *counts = map(int, out.split())
        self.case.assertEqual((process.returncode, status), (0, 0))
        return counts

    def check(self, counts, directory):
        """Each span is in the one file there, once."""
        case = self.case
        [file] = published(directory)
        plain, rich, brief = counts
        meta = file.metadata
        case.assertEqual(meta["dropped_spans"], 0, meta)
        case.assertNotIn("broken_rings", meta)
        case.assertTrue(meta["complete"])
        case.assertEqual(meta["bad_args"], 0)
        names = file.names()
        case.assertEqual(names.count("brief"), brief)
        numbers = [s["args"]["n"] for s in file.spans if s["name"] == "rich"]
        case.assertEqual(numbers, list(range(rich)))
        numbers = [int(n[1:]) for n in names if re.match(r"p\d", n)]
        case.assertEqual(numbers, [n % 1000 for n in range(plain)])
        last = {}  # a thread's spans end one after the other here
        for span in file.spans:
            end = span["start_ns"] + span["duration_ns"]
            case.assertGreaterEqual(end, last.get(span["tid"], 0))
            last[span["tid"]] = end
