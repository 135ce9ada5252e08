/* Preloaded into tare (LD_PRELOAD): records in order all calls that change files, with their data.
 * tests/faults/crash.py makes from the record the states that a crash could leave. TARE_RECORD is
 * the file, which all processes share; TARE_RECORD_ROOT the folder that is watched.
 *
 *   C PROCESS INODE PATH                 a file was created
 *   D PROCESS INODE PATH                 a folder was created
 *   W PROCESS INODE OFFSET SIZE          written; SIZE bytes and a newline follow
 *   T PROCESS INODE SIZE                 truncated or extended to this size
 *   R PROCESS INODE FROM<tab>TO          renamed
 *   U PROCESS 0 PATH                     a name was removed
 *   S PROCESS INODE                      a file or folder is about to be synced
 *   F PROCESS INODE                      the whole file system is about to be synced
 *
 * PROCESS is the process's number, by which the ranks of a job are distinguished. Paths begin at
 * the root. Data in stdio's buffers counts as written: a program that needs it on the disk flushes
 * and syncs it. */
#define _GNU_SOURCE
#include "next.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* hidden functions do not replace those of the C library */
static int out = -1;
static char root[PATH_MAX];
static dev_t device;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TARE_RECORD"), *folder = getenv("TARE_RECORD_ROOT");
    struct stat s;
    if (strcmp(program_invocation_short_name, "tare") || !path || !folder || !realpath(folder, root) || stat(root, &s)) return;
    device = s.st_dev;
    out = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/* One record per system call: those of other threads and processes come before it or after it. */
static void put(const char *head, const void *data, size_t n)
{
    char newline = '\n';
    struct iovec parts[] = {{(void *)(uintptr_t)head, strlen(head)}, {(void *)(uintptr_t)data, n}, {&newline, n != 0}};
    const size_t all = parts[0].iov_len + n + parts[2].iov_len;
    if (syscall(SYS_writev, out, parts, 3) == (long)all) return;
    static const char WHY[] = "the recorder cannot write\n";
    syscall(SYS_write, STDERR_FILENO, WHY, sizeof WHY - 1);
    _exit(99);
}

/* Returns the path from the root on, or NULL if it is elsewhere. */
static const char *inside(const char *path, char full[PATH_MAX])
{
    char cwd[PATH_MAX] = "";
    if (out < 0 || (*path != '/' && !getcwd(cwd, sizeof cwd))) return NULL;
    if (*path == '/')
        snprintf(full, PATH_MAX, "%s", path);
    else
        snprintf(full, PATH_MAX, "%.2000s/%.2000s", cwd, !strncmp(path, "./", 2) ? path + 2 : path);
    const size_t n = strlen(root);
    return !strncmp(full, root, n) && full[n] == '/' ? full + n + 1 : NULL;
}

static void named(char kind, unsigned long inode, const char *path)
{
    char head[2 * PATH_MAX + 64];
    const int why = errno;
    snprintf(head, sizeof head, "%c %d %lu %s\n", kind, (int)getpid(), inode, path);
    put(head, NULL, 0);
    errno = why;
}

/* Returns the file's number; 0: not a file or folder of that device. */
static unsigned long inode_of(int fd)
{
    struct stat s;
    const int why = errno;
    const int known = out >= 0 && !fstat(fd, &s) && s.st_dev == device && (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode));
    errno = why;
    return known ? s.st_ino : 0;
}

static void numbered(char kind, int fd, long size)
{
    char head[64];
    const unsigned long inode = inode_of(fd);
    if (!inode) return;
    if (kind == 'T')
        snprintf(head, sizeof head, "T %d %lu %ld\n", (int)getpid(), inode, size);
    else
        snprintf(head, sizeof head, "%c %d %lu\n", kind, (int)getpid(), inode);
    put(head, NULL, 0);
}

static void written(int fd, off_t at, const void *data, size_t n)
{
    char head[100];
    const unsigned long inode = inode_of(fd);
    if (!inode || !n) return;
    const int why = errno;
    snprintf(head, sizeof head, "W %d %lu %ld %zu\n", (int)getpid(), inode, (long)at, n);
    put(head, data, n);
    errno = why;
}

/* After an open that may create or truncate the file. */
static void opened(const char *path, int fd, int there, int cut)
{
    char full[PATH_MAX];
    const char *name = fd >= 0 ? inside(path, full) : NULL;
    if (!name) return;
    if (!there)
        named('C', inode_of(fd), name);
    else if (cut)
        numbered('T', fd, 0);
}

#define OPEN(name)                                                                                                                 \
    DECLARE(name);                                                                                                                 \
    int name(const char *path, int flags, ...)                                                                                     \
    {                                                                                                                              \
        va_list list;                                                                                                              \
        va_start(list, flags);                                                                                                     \
        const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;                                            \
        va_end(list);                                                                                                              \
        const int there = !(flags & O_CREAT) || !access(path, F_OK), fd = NEXT(name)(path, flags, mode);                           \
        opened(path, fd, there, flags &O_TRUNC);                                                                                   \
        return fd;                                                                                                                 \
    }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                                                                                \
    DECLARE(name);                                                                                                                 \
    FILE *name(const char *path, const char *mode)                                                                                 \
    {                                                                                                                              \
        const int there = *mode == 'r' || !access(path, F_OK);                                                                     \
        FILE *f = NEXT(name)(path, mode);                                                                                          \
        if (f) opened(path, fileno(f), there, *mode == 'w');                                                                       \
        return f;                                                                                                                  \
    }
FOPEN(fopen)
FOPEN(fopen64)

DECLARE(fwrite);
size_t fwrite(const void *data, size_t size, size_t n, FILE *f)
{
    const off_t at = inode_of(fileno(f)) ? ftello(f) : 0;
    const size_t done = NEXT(fwrite)(data, size, n, f);
    written(fileno(f), at, data, done * size);
    return done;
}

DECLARE(write);
ssize_t write(int fd, const void *data, size_t n)
{
    const ssize_t done = NEXT(write)(fd, data, n);
    if (done > 0) written(fd, lseek(fd, 0, SEEK_CUR) - done, data, (size_t)done);
    return done;
}

#define PWRITE(name)                                                                                                               \
    DECLARE(name);                                                                                                                 \
    ssize_t name(int fd, const void *data, size_t n, off_t at)                                                                     \
    {                                                                                                                              \
        const ssize_t done = NEXT(name)(fd, data, n, at);                                                                          \
        if (done > 0) written(fd, at, data, (size_t)done);                                                                         \
        return done;                                                                                                               \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define FTRUNCATE(name)                                                                                                            \
    DECLARE(name);                                                                                                                 \
    int name(int fd, off_t n)                                                                                                      \
    {                                                                                                                              \
        const int failed = NEXT(name)(fd, n);                                                                                      \
        if (!failed) numbered('T', fd, n);                                                                                         \
        return failed;                                                                                                             \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

#define SYNC(name, kind)                                                                                                           \
    DECLARE(name);                                                                                                                 \
    int name(int fd)                                                                                                               \
    {                                                                                                                              \
        numbered(kind, fd, 0);                                                                                                     \
        return NEXT(name)(fd);                                                                                                     \
    }
SYNC(fsync, 'S')
SYNC(fdatasync, 'S')
SYNC(syncfs, 'F')

DECLARE(rename);
int rename(const char *from, const char *to)
{
    char a[PATH_MAX], b[PATH_MAX], both[2 * PATH_MAX];
    const int failed = NEXT(rename)(from, to);
    const char *x = failed ? NULL : inside(from, a), *y = failed ? NULL : inside(to, b);
    struct stat s;
    if (x && y && !lstat(to, &s)) {
        snprintf(both, sizeof both, "%s\t%s", x, y);
        named('R', s.st_ino, both);
    }
    return failed;
}

#define REMOVE(name)                                                                                                               \
    DECLARE(name);                                                                                                                 \
    int name(const char *path)                                                                                                     \
    {                                                                                                                              \
        char full[PATH_MAX];                                                                                                       \
        const int failed = NEXT(name)(path);                                                                                       \
        const char *x = failed ? NULL : inside(path, full);                                                                        \
        if (x) named('U', 0, x);                                                                                                   \
        return failed;                                                                                                             \
    }
REMOVE(unlink)
REMOVE(remove)
REMOVE(rmdir)

DECLARE(mkdir);
int mkdir(const char *path, mode_t mode)
{
    char full[PATH_MAX];
    struct stat s;
    const int failed = NEXT(mkdir)(path, mode);
    const char *x = failed ? NULL : inside(path, full);
    if (x && !lstat(path, &s)) named('D', s.st_ino, x);
    return failed;
}
