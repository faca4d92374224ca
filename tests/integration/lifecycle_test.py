"""Lives that programs lead: forks, threads, limits, closed descriptors, filters.

A table: each row is a small C program, recorded under SHP_OUTPUT_DIR by a shpd of
the test's own, its exit status, and how many spans of each name all its host
files together must hold. Nothing may be lost, and the program may not notice.

Seen to fail: 2,000 threads at once lost the spans of some, uncounted, while a
thread's fresh ring was claimed by a plain store.
"""

import collections
import unittest

from shp_testing import (Case, compile_program, host_files, main,
                         pending_paths, run, sanitizers,
                         traced_environment, wait_for)

HEAD = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include </usr/include/spawn.h>  // preload/ has one too
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shp.h"
extern char** environ;
static void spans(const char* name, int count) {
  for (int i = 0; i < count; ++i) shp_span_end(shp_span_start(name));
}
static void* worker(void* name) { spans(name, 100); return NULL; }
static void* brief(void* name) { spans(name, 1); return NULL; }
static int status_of(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return status;
}
int main(int argc, char** argv) {
  (void)argc; (void)argv;
"""

# Name: the body of main, {span name: count}. Ends by `return` where not said.
LIVES = {
    "fork in a thread's presence, the child records too": (r"""
  pthread_t other;
  spans("parent", 10);
  pthread_create(&other, NULL, worker, "other");
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) { spans("child", 5); _exit(0); }
    if (status_of(child) != 0) return 2;
  }
  pthread_join(other, NULL);
  spans("parent", 10);
""", {"parent": 20, "other": 100, "child": 100}),
    "vfork and posix_spawn": (r"""
  spans("parent", 1);
  const pid_t child = vfork();
  if (child == 0) { execl("/bin/true", "true", (char*)NULL); _exit(9); }
  if (status_of(child) != 0) return 2;
  pid_t spawned;
  char* words[] = {"true", NULL};
  if (posix_spawn(&spawned, "/bin/true", NULL, NULL, words, environ)) return 3;
  if (status_of(spawned) != 0) return 4;
  spans("parent", 1);
""", {"parent": 2}),
    "a program that becomes a daemon": (r"""
  spans("before", 3);
  if (fork() != 0) return 0;
  setsid();
  if (fork() != 0) _exit(0);
  chdir("/");
  for (int fd = 0; fd < 1024; ++fd) if (fd > 2) close(fd);
  spans("daemon", 7);
""", {"before": 3, "daemon": 7}),
    "all descriptors closed, twice": (r"""
  spans("a", 3);
  syscall(SYS_close_range, 3U, ~0U, 0);
  spans("a", 3);
  for (int fd = 3; fd < 2000; ++fd) close(fd);
  pthread_t other;
  pthread_create(&other, NULL, worker, "other");
  pthread_join(other, NULL);
""", {"a": 6, "other": 100}),
    "10,000 threads one after the other": (r"""
  for (int i = 0; i < 10000; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, brief, "t")) return 2;
    pthread_join(thread, NULL);
  }
""", {"t": 10000}),
    "2,000 threads at once": (r"""
  static pthread_t threads[2000];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (int i = 0; i < 2000; ++i) {
    if (pthread_create(&threads[i], &small, worker, "t")) return 2;
  }
  for (int i = 0; i < 2000; ++i) pthread_join(threads[i], NULL);
""", {"t": 200000}),
    "no descriptor left": (r"""
  spans("a", 1);
  struct rlimit limit = {64, 64};
  setrlimit(RLIMIT_NOFILE, &limit);
  while (open("/dev/null", O_RDONLY) >= 0) {}
  pthread_t other;
  pthread_create(&other, NULL, worker, "other");
  pthread_join(other, NULL);
  spans("a", 1);
""", {"a": 2, "other": 100}),
    "little locked memory and address space": (r"""
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_MEMLOCK, &none);
  struct rlimit space = {400u << 20, 400u << 20};
  setrlimit(RLIMIT_AS, &space);
  spans("a", 1000);
""", {"a": 1000}),
    "a seccomp filter of its own": (r"""
  spans("a", 1);
  struct sock_filter deny[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {6, deny};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 2;
  pthread_t other;
  pthread_create(&other, NULL, worker, "other");
  pthread_join(other, NULL);
  spans("a", 1);
""", {"a": 2, "other": 100}),
    "exec of itself goes on in a second file": (r"""
  spans(argc > 1 ? "second" : "first", 4);
  if (argc == 1) execl("/proc/self/exe", argv[0], "again", (char*)NULL);
""", {"first": 4, "second": 4}),
    "a namespace of its own, with no /dev/shm": (r"""
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC) != 0
      && unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) { /* not allowed here */ }
  spans("a", 5);
""", {"a": 5}),
}


class Lifecycle(Case):
    def lives(self, body, **extra):
        program = compile_program(
            self.script(HEAD + body + "\n  return 0;\n}\n", "life.c"),
            self.folder / "life", "-pthread", "-ldl", "-Wno-unused-result",
            "-Wno-unused-function")
        daemon = self.daemon()
        result = run([program], seconds=120, env=traced_environment(
            daemon, SHP_OUTPUT_DIR=self.out, **extra))
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, "", ""))
        return daemon

    def settled(self, expected):
        """What is in the files, once it is all there (or does not come)."""
        found = collections.Counter()
        lost = 0

        def all_there():
            nonlocal found, lost
            if pending_paths(self.out):
                return False
            files = host_files(self.out)
            found = collections.Counter(
                name for f in files for name in f.names())
            lost = sum(f.metadata["dropped_spans"] for f in files)
            return sum(found.values()) >= sum(expected.values())
        try:
            wait_for(all_there, 30)
        except AssertionError:
            pass
        return dict(found), lost


def add_row(number, title, body, expected):
    def test(self):
        self.lives(body)
        self.assertEqual(self.settled(expected), (expected, 0))
    name = "".join(c if c.isalnum() else "_" for c in title)
    test.__name__ = f"test_{number:02}_{name}"
    if sanitizers() and "address space" in title:
        test = unittest.skip("shadow memory does not fit")(test)
    setattr(Lifecycle, test.__name__, test)


for place, (what, (life, counts)) in enumerate(LIVES.items(), 1):
    add_row(place, what, life, counts)


if __name__ == "__main__":
    main()
