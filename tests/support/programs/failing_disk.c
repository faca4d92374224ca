// LD_PRELOADed into shpd: makes file-system calls fail while a file says so.
// $FAULT_FILE holds "CALL ERRNO" (pwrite 28); empty or absent: nothing fails.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fault(const char* call) {
  char text[64] = {0};
  char name[32];
  int number = 0;
  const int fd = open(getenv("FAULT_FILE"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0 || sscanf(text, "%31s %d", name, &number) != 2 ||
      strcmp(name, call) != 0) {
    return 0;
  }
  errno = number;
  return 1;
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  static ssize_t (*real)(int, const void*, size_t, off_t);
  if (real == NULL) {
    *(void**)&real = dlsym(RTLD_NEXT, "pwrite");
  }
  return fault("pwrite") ? -1 : real(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) {
  return pwrite(fd, bytes, count, offset);
}

int fsync(int fd) {
  static int (*real)(int);
  if (real == NULL) {
    *(void**)&real = dlsym(RTLD_NEXT, "fsync");
  }
  return fault("fsync") ? -1 : real(fd);
}

int linkat(int from, const char* old, int to, const char* name, int flags) {
  static int (*real)(int, const char*, int, const char*, int);
  if (real == NULL) {
    *(void**)&real = dlsym(RTLD_NEXT, "linkat");
  }
  return fault("linkat") ? -1 : real(from, old, to, name, flags);
}
