"""Ended means kept: SIGKILL in the middle of a loop, many times.

The program writes the number of each span to a pipe after span_end returned.
Whatever number the pipe has delivered must be in the published file, once.
Seen to fail: with the drain of a dead client's rings left out of the daemon,
the last spans of nearly every round are missing.
"""

import os
import random
import signal
import subprocess
import sys
import time

from shp_testing import (Case, HostFile, SLOW, compile_program, main,
                         pending_paths, closed_paths, traced_environment,
                         wait_for)

PYTHON_LOOP = """
import os, threading
import service_host_profiling as shp
def loop(thread):
    n = 0
    while True:
        shp.span_end(shp.span_start(f"{thread}", {"n": n}))
        os.write(1, b"%d %d\\n" % (thread, n))
        n += 1
for thread in range(2):
    threading.Thread(target=loop, args=(thread,)).start()
"""

C_LOOP = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "shp.h"

static void* loop(void* argument) {
  const long thread = (long)argument;
  char name[16];
  snprintf(name, sizeof name, "%ld", thread);
  for (long n = 0;; ++n) {
    char args[64];
    char line[64];
    snprintf(args, sizeof args, "{\"n\":%ld}", n);
    shp_span_end(shp_span_start_json(name, args));
    snprintf(line, sizeof line, "%ld %ld\n", thread, n);
    if (write(1, line, strlen(line)) < 0) return NULL;
  }
}

int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, loop, (void*)1L);
  loop((void*)0L);
}
"""

ROUNDS = int(os.environ.get("SHP_KILL_ROUNDS", "12"))


class Sigkill(Case):
    def one_round(self, command, environment, random_source):
        before = set(closed_paths(self.out))
        process = subprocess.Popen(command, env=environment,
                                   stdout=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        killer_at = time.monotonic() + random_source.uniform(0.05, 0.4) * SLOW
        seen = {0: -1, 1: -1}
        rest = b""
        killed = False
        while True:
            if not killed and time.monotonic() > killer_at and seen[0] >= 0:
                process.send_signal(signal.SIGKILL)
                killed = True
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                thread, number = map(int, line.split())
                self.assertEqual(number, seen[thread] + 1)
                seen[thread] = number
        self.assertEqual(process.wait(), -signal.SIGKILL)
        process.stdout.close()
        wait_for(lambda: set(closed_paths(self.out)) - before
                 and not pending_paths(self.out), 20, "the file")
        [path] = set(closed_paths(self.out)) - before
        self.check(HostFile(path), seen)

    def check(self, file, seen):
        self.assertEqual(file.metadata["end_reason"], "killed")
        self.assertFalse(file.metadata["complete"])
        self.assertEqual(file.metadata["exit_signal"], signal.SIGKILL)
        for thread, last in seen.items():
            numbers = [s["args"]["n"] for s in file.spans
                       if s["name"] == str(thread)]
            # Each once and in order; one more may have ended unlogged.
            self.assertEqual(numbers, list(range(len(numbers))))
            self.assertIn(len(numbers), (last + 1, last + 2))
        self.assertLessEqual(len(file.open_spans), 2)
        self.assertEqual(file.metadata["dropped"]["unfinished"],
                         len(file.open_spans))

    def rounds(self, command):
        daemon = self.daemon()
        environment = traced_environment(daemon, SHP_OUTPUT_DIR=self.out)
        random_source = random.Random(1)
        for _ in range(ROUNDS):
            self.one_round([str(c) for c in command], environment,
                           random_source)

    def test_of_a_c_program_loses_no_ended_span(self):
        self.rounds([compile_program(self.script(C_LOOP, "loop.c"),
                                     self.folder / "loop", "-pthread",
                                     "-ldl")])

    def test_of_a_python_program_loses_no_ended_span(self):
        self.rounds([sys.executable, self.script(PYTHON_LOOP)])


if __name__ == "__main__":
    main()
