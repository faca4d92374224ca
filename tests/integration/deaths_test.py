"""Ended means kept, whatever ends the process: SIGKILL, SIGSEGV, abort, _exit,
exec in the middle, the OOM killer; two threads in each of two to four processes.

Each thread writes the number of its span to a pipe after shp_span_end returned.
What the pipe has delivered must be in the process's file, once and in order; the
counts in its first line agree with its lines; an outer span that never ends is
listed as open.

SHP_DEATH_ROUNDS is the number of rounds (default 18). The full run:
  SHP_DEATH_ROUNDS=1000 python3 tests/integration/deaths_test.py
"""

import collections
import contextlib
import os
import pathlib
import random
import signal
import subprocess

from shp_testing import (Case, compile_program, host_files, main,
                         closed_paths, pending_paths, traced_environment,
                         wait_for)

ROUNDS = int(os.environ.get("SHP_DEATH_ROUNDS", "18"))
# How it dies: end_reason, exit_signal, exit_code, complete.
WAYS = {
    "kill": ("killed", signal.SIGKILL, None, False),
    "segv": ("killed", signal.SIGSEGV, None, False),
    "abort": ("killed", signal.SIGABRT, None, False),
    "oom": ("killed", signal.SIGKILL, None, False),
    "_exit": ("exit", None, 3, True),
    "exec": ("exec", None, None, True),
}
CGROUPS = [pathlib.Path(p) for p in ("/sys/fs/cgroup/memory",
                                     "/sys/fs/cgroup")]

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shp.h"

static void* loop(void* argument) {
  const long thread = (long)argument;
  shp_span_start("outer");
  char name[16];
  snprintf(name, sizeof name, "t%ld", thread);
  for (long n = 0;; ++n) {
    char args[64];
    char line[64];
    snprintf(args, sizeof args, "{\"n\":%ld}", n);
    shp_span_end(shp_span_start_json(name, args));
    snprintf(line, sizeof line, "%d %ld %ld\n", (int)getpid(), thread, n);
    if (write(1, line, strlen(line)) < 0) return NULL;
  }
}

static void die(const char* way) {
  if (!strcmp(way, "segv")) *(volatile int*)atol("16") = 1;
  if (!strcmp(way, "abort")) abort();
  if (!strcmp(way, "_exit")) _exit(3);
  if (!strcmp(way, "kill")) raise(SIGKILL);
  if (!strcmp(way, "exec")) execl("/bin/true", "true", (char*)NULL);
  for (;;) memset(malloc(1 << 20), 1, 1 << 20);
}

int main(int argc, char** argv) {
  (void)argc;
  const long pause_us = atol(argv[2]);
  fork();
  if (strcmp(argv[1], "oom") != 0) fork();
  pthread_t threads[2];
  for (long i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, loop, (void*)i);
  }
  usleep(pause_us + getpid() % 7 * 1000);
  die(argv[1]);
}
"""


class Deaths(Case):
    def setUp(self):
        super().setUp()
        self.program = compile_program(self.script(PROGRAM, "dies.c"),
                                       self.folder / "dies", "-pthread",
                                       "-ldl")
        self.ways = [w for w in WAYS if w != "oom" or self.make_cgroup()]

    def make_cgroup(self):
        """A group whose memory runs out soon, where one can be made."""
        for root in CGROUPS:
            group = root / f"shp-deaths-{os.getpid()}"
            for name in ("memory.limit_in_bytes", "memory.max"):
                with contextlib.suppress(OSError):
                    group.mkdir(exist_ok=True)
                    (group / name).write_text(str(64 << 20))
                    self.addCleanup(self.remove_cgroup, group)
                    self.cgroup = group
                    return True
        return False

    def remove_cgroup(self, group):
        with contextlib.suppress(OSError):
            wait_for(lambda: not (group / "cgroup.procs").read_text(), 5)
            group.rmdir()

    def command(self, way, pause_us):
        words = [str(self.program), way, str(pause_us)]
        if way != "oom":
            return words
        return ["sh", "-c", f'echo $$ > {self.cgroup}/cgroup.procs; '
                f'exec "$@"', "sh", *words]

    def one_round(self, daemon, way, pause_us):
        process = subprocess.Popen(
            self.command(way, pause_us), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=traced_environment(daemon, SHP_OUTPUT_DIR=self.out))
        with process:
            text = process.stdout.read().decode()
        seen = collections.defaultdict(int)
        # The last line of a process may be cut by its death.
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                pid, thread, number = map(int, line.split())
                key = (pid, f"t{thread}")
                self.assertEqual(number, seen[key])
                seen[key] = number + 1
        pids = {pid for pid, _ in seen}
        wait_for(lambda: len(closed_paths(self.out)) >= len(pids)
                 and not pending_paths(self.out), 30, "the files")
        files = {f.metadata["pid"]: f for f in host_files(self.out)}
        self.assertLessEqual(pids, set(files))
        for pid in pids:
            self.check(files[pid], way, seen)
        for path in self.out.iterdir():
            path.unlink()

    def check(self, file, way, seen):
        meta = file.metadata
        reason, exit_signal, code, complete = WAYS[way]
        # What is reaped at once may leave no status; /bin/true ends so soon
        # that the daemon may find it gone and not replaced.
        if way == "exec":
            self.assertIn(meta["end_reason"], (reason, "exit"), meta)
        elif meta.get("exit_signal") or meta.get("exit_code") is not None:
            self.assertEqual(meta["end_reason"], reason, meta)
            self.assertEqual(meta["complete"], complete)
        if exit_signal and meta.get("exit_signal"):
            self.assertEqual(meta["exit_signal"], exit_signal)
        if code and meta.get("exit_code") is not None:
            self.assertEqual(meta["exit_code"], code)
        for thread in ("t0", "t1"):
            numbers = [s["args"]["n"] for s in file.spans
                       if s["name"] == thread]
            self.assertEqual(numbers, list(range(len(numbers))))
            ended = seen[(meta["pid"], thread)]
            self.assertIn(len(numbers), (ended, ended + 1))
        self.assertEqual(meta["dropped"]["unfinished"], len(file.open_spans))
        self.assertEqual(meta["dropped_spans"], len(file.open_spans))
        outer = [s for s in file.open_spans if s["name"] == "outer"]
        self.assertLessEqual(len(outer), 2)
        self.assertLessEqual(len(file.open_spans), 4)

    def test_of_every_kind_lose_no_ended_span(self):
        daemon = self.daemon()
        chance = random.Random(6)
        done = collections.Counter()
        quick = [way for way in self.ways if way != "oom"]
        for number in range(ROUNDS):
            way = quick[number % len(quick)]
            if "oom" in self.ways and number % 100 == 1:
                way = "oom"  # the kernel takes its time over it
            self.one_round(daemon, way, int(chance.uniform(1, 60) * 1000))
            done[way] += 1
        print(dict(done))


if __name__ == "__main__":
    main()
