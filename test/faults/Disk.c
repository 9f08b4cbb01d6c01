/*===- Disk.c - A disk that is full, and a process that is killed -------------===
 *
 * Counts a program's calls that change files below one folder. The call of a number fails with
 * ENOSPC, as do all writes after it, or ends the process as `kill -9` does. Controlled by the
 * environment:
 *
 *   WEIR_DISK_FOLDER  the folder; calls on files elsewhere do not count
 *   WEIR_DISK_CALL    the number of the call, from 1 on; default: none
 *   WEIR_DISK_KILL    if set, the process ends there
 *   WEIR_DISK_REPORT  a file whose length is the number of calls so far
 *===-------------------------------------------------------------------------===*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int calls;

static int isBelow(const char *path) {
  const char *folder = getenv("WEIR_DISK_FOLDER");
  return folder && strncmp(path, folder, strlen(folder)) == 0;
}

/* Whether a path, which may be relative, is in the folder. */
static int isWatched(const char *path) {
  if (path[0] == '/')
    return isBelow(path);
  char current[4096];
  return getcwd(current, sizeof(current)) && isBelow(current);
}

static int isWatchedFile(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length < 0)
    return 0;
  path[length] = 0;
  return isBelow(path);
}

static void note(void) {
  const char *path = getenv("WEIR_DISK_REPORT");
  if (!path)
    return;
  int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  syscall(SYS_write, file, "x", 1);
  syscall(SYS_close, file);
}

/* Counts a call. Whether it is to fail. */
static int fails(int isWrite) {
  const char *number = getenv("WEIR_DISK_CALL");
  int wanted = number ? atoi(number) : 0, current = ++calls;
  note();
  if (!wanted || current < wanted)
    return 0;
  if (getenv("WEIR_DISK_KILL"))
    kill(getpid(), SIGKILL);
  if (current > wanted && !isWrite)
    return 0; /* a full disk lets files be renamed */
  errno = ENOSPC;
  return 1;
}

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t count) {
  if (isWatchedFile(file) && fails(1))
    return -1;
  return syscall(SYS_write, file, bytes, count);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  if (isWatchedFile(file) && fails(1))
    return -1;
  return syscall(SYS_writev, file, parts, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  if (isWatchedFile(file) && fails(1))
    return -1;
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  return pwrite64(file, bytes, count, offset);
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file) {
  if (isWatchedFile(fileno(file)) && fails(1))
    return 0;
  return NEXT(fwrite)(bytes, size, count, file);
}

/* Writes what is still in the buffer. */
int fclose(FILE *file) {
  int isFull = __fwritable(file) && isWatchedFile(fileno(file)) && fails(1);
  int result = NEXT(fclose)(file);
  if (!isFull)
    return result;
  errno = ENOSPC;
  return EOF;
}

int fsync(int file) {
  if (isWatchedFile(file) && fails(1))
    return -1;
  return (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to) {
  if (isWatched(to) && fails(0))
    return -1;
  return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int mkdir(const char *path, mode_t mode) {
  if (isWatched(path) && fails(0))
    return -1;
  return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

static int isMade(const char *path, int flags) {
  return (flags & (O_CREAT | O_WRONLY | O_RDWR)) && isWatched(path) && fails(0);
}

#define OPEN(name)                                                                                 \
  int name(const char *path, int flags, ...) {                                                     \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(rest, int) : 0;                                 \
    va_end(rest);                                                                                  \
    return isMade(path, flags) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);       \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                                                \
  FILE *name(const char *path, const char *mode) {                                                 \
    if (mode[0] != 'r' && isWatched(path) && fails(0))                                             \
      return NULL;                                                                                 \
    return NEXT(name)(path, mode);                                                                 \
  }
FOPEN(fopen)
FOPEN(fopen64)
