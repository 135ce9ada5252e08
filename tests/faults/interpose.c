/* Preloaded into tare (LD_PRELOAD): fails chosen calls of the C library, for tests of what the program does then.
 *
 *   TARE_INTERPOSE   what fails: KIND=N fails the N-th call of that kind in each process named tare, KIND=N+ that one and all that
 *                    follow. Kinds: alloc (malloc and its kin return NULL), io (open, read, write, fsync, rename, ... give the
 *                    error TARE_INTERPOSE_ERRNO, a number, EIO unless set), db (the same, and locks, of SQLite's files alone: runs.db*),
 *                    short (a write or read of more than one byte does half), eintr (a write or read is interrupted before it does anything)
 *                    KIND=@PATH.N[+] counts the calls that come by one path alone: the return addresses up the stack, as one number, which
 *                    threads do not change as they change the order of all calls
 *   TARE_INTERPOSE_PATHS   a file to which each process adds at its end, for each path by which calls came: "KIND PATH CALLS"
 *   TARE_INTERPOSE_UNSYNCED  a text: fsync and fdatasync of files and folders whose path has it do nothing, as if the program had forgotten them
 *   TARE_INTERPOSE_TRAP    set: SIGTRAP at the fault, so that a debugger shows where it is
 *   TARE_INTERPOSE_COUNT   a file to which each process adds a line at its end: "alloc N io N ... failed N net N"; failed: calls that were
 *                    made to fail; net: sockets of the internet
 *
 * Calls before main, of other programs, and of the standard streams' descriptors 1 and 2 are let through and not counted.
 *
 * With TARE_WRAPPED it is a part of tare instead, where a sanitizer has an allocator of its own: the linker leads tare's calls of malloc and its kin here
 * (--wrap), and nothing else can be made to fail. */
#define _GNU_SOURCE
#ifndef TARE_WRAPPED
#include "next.h"
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef TARE_WRAPPED
#define OURS(NAME) __wrap_##NAME
#define THEIRS(NAME) __real_##NAME
#else
#define OURS(NAME) NAME
#define THEIRS(NAME) __libc_##NAME
#endif
extern void *THEIRS(malloc)(size_t n);
extern void *THEIRS(calloc)(size_t n, size_t size);
extern void *THEIRS(realloc)(void *p, size_t n);

#pragma GCC visibility push(default) /* what is hidden does not take the place of the C library's */
enum kind { ALLOC, IO, DB, SHORT, INTERRUPTED, KINDS };
static const char *const NAMES[KINDS] = {"alloc", "io", "db", "short", "eintr"};
static struct {
    atomic_long calls;
    unsigned long path; /* 0: at counts the calls of the kind; else those by that path */
    long at;            /* 0: none fails */
    int onward;         /* and all after it */
    atomic_int begun;
} kinds[KINDS];
static atomic_int on, trap;
static atomic_long sockets, failed;
static int error_number = EIO;
static const char *unsynced; /* paths with this in it are not synced; NULL: all are */

/* ---- paths */
enum { FRAMES = 32, PLACES = 1 << 15 };
static struct place {
    atomic_ulong path;
    atomic_long calls;
} places[KINDS][PLACES];
static int by_path; /* calls are told apart by path */
/* What the unwinder itself asks for is not counted. The model: a variable of a thread that needs no memory at its first use. */
static _Thread_local int inside __attribute__((tls_model("initial-exec")));

/* Where a module lies differs from process to process: an address counts from its beginning. (dladdr() is far slower.) */
static unsigned long in_module(void *address)
{
    struct dl_find_object module;
    return (unsigned long)address - (_dl_find_object(address, &module) ? 0 : (unsigned long)module.dlfo_map_start);
}

/* The return addresses up the stack, as one number (FNV-1a). */
static unsigned long path_here(void)
{
    void *frames[FRAMES];
    const int n = backtrace(frames, FRAMES);
    unsigned long hash = 0xcbf29ce484222325;
    for (int i = 0; i < n; i++) hash = (hash ^ in_module(frames[i])) * 0x100000001b3;
    return hash ? hash : 1;
}

/* The table only grows, without locks: a child of fork() may come while another thread is here. */
static struct place *place_of(enum kind k, unsigned long path)
{
    for (unsigned long i = 0; i < PLACES; i++) {
        struct place *p = &places[k][(path + i) % PLACES];
        unsigned long there = 0;
        if (atomic_compare_exchange_strong(&p->path, &there, path) || there == path) return p;
    }
    abort(); /* more paths than PLACES */
}

static int path_fails(enum kind k)
{
    inside = 1;
    const unsigned long path = path_here();
    inside = 0;
    const long call = atomic_fetch_add(&place_of(k, path)->calls, 1) + 1;
    if (path == kinds[k].path && call == kinds[k].at) {
        atomic_store(&kinds[k].begun, 1);
        return 1;
    }
    return kinds[k].onward && atomic_load(&kinds[k].begun);
}

static int fails(enum kind k)
{
    if (!atomic_load(&on) || inside) return 0;
    const long call = atomic_fetch_add(&kinds[k].calls, 1) + 1, at = kinds[k].at;
    if (by_path ? !path_fails(k) : !at || (call != at && !(kinds[k].onward && call > at))) return 0;
    atomic_fetch_add(&failed, 1);
    if (trap) raise(SIGTRAP);
    return 1;
}

/* ---- what is asked for */
static void chosen(enum kind k, const char *point)
{
    char *end = (char *)point - 1;
    if (*point == '@') {
        kinds[k].path = strtoul(point + 1, &end, 16);
        by_path = 1;
    }
    kinds[k].at = strtol(end + 1, &end, 10);
    kinds[k].onward = *end == '+';
}

__attribute__((constructor)) static void begin(void)
{
    if (strcmp(program_invocation_short_name, "tare")) return;
    const char *what = getenv("TARE_INTERPOSE"), *number = getenv("TARE_INTERPOSE_ERRNO");
    for (int k = 0; what && k < KINDS; k++) {
        const size_t n = strlen(NAMES[k]);
        if (strncmp(what, NAMES[k], n) || what[n] != '=') continue;
        chosen((enum kind)k, what + n + 1);
    }
    if (getenv("TARE_INTERPOSE_PATHS")) by_path = 1;
    if (by_path) path_here(); /* the first time, the unwinder is loaded */
    unsynced = getenv("TARE_INTERPOSE_UNSYNCED");
    trap = getenv("TARE_INTERPOSE_TRAP") != NULL;
    if (number) error_number = atoi(number);
    atomic_store(&on, 1);
}

/* The file that a variable names, to add to; -1: none. */
static int added_to(const char *variable)
{
    const char *path = getenv(variable);
    return path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
}

static void tell_counts(int fd)
{
    for (int k = 0; k < KINDS; k++) dprintf(fd, "%s %ld ", NAMES[k], atomic_load(&kinds[k].calls));
    dprintf(fd, "failed %ld net %ld\n", atomic_load(&failed), atomic_load(&sockets));
    close(fd);
}

static void tell_paths(int fd)
{
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < PLACES; i++) {
            const struct place *p = &places[k][i];
            if (p->path) dprintf(fd, "%s %016lx %ld\n", NAMES[k], p->path, p->calls);
        }
    close(fd);
}

__attribute__((destructor)) static void end(void)
{
    if (!atomic_exchange(&on, 0)) return;
    int fd = added_to("TARE_INTERPOSE_COUNT");
    if (fd >= 0) tell_counts(fd);
    if ((fd = added_to("TARE_INTERPOSE_PATHS")) >= 0) tell_paths(fd);
}

/* ---- memory */
static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *aligned(size_t alignment, size_t n)
{
#ifdef TARE_WRAPPED
    extern int __real_posix_memalign(void **out, size_t alignment, size_t n);
    void *p;
    return __real_posix_memalign(&p, alignment, n) ? NULL : p;
#else
    extern void *__libc_memalign(size_t alignment, size_t n);
    return __libc_memalign(alignment, n);
#endif
}

void *OURS(malloc)(size_t n)
{
    return fails(ALLOC) ? no_memory() : THEIRS(malloc)(n);
}

void *OURS(calloc)(size_t n, size_t size)
{
    return fails(ALLOC) ? no_memory() : THEIRS(calloc)(n, size);
}

void *OURS(realloc)(void *p, size_t n)
{
    return fails(ALLOC) ? no_memory() : THEIRS(realloc)(p, n);
}

void *OURS(aligned_alloc)(size_t alignment, size_t n)
{
    return fails(ALLOC) ? no_memory() : aligned(alignment, n);
}

int OURS(posix_memalign)(void **out, size_t alignment, size_t n)
{
    void *p = fails(ALLOC) ? NULL : aligned(alignment, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

#ifndef TARE_WRAPPED
/* ---- files */
enum { FILES = 4096 };
static atomic_char of_database[FILES]; /* by descriptor */

static int is_database(const char *path)
{
    const char *name = strrchr(path, '/');
    return !strncmp(name ? name + 1 : path, "runs.db", 7);
}

static int io_fails(int database)
{
    const int io = fails(IO);
    if (!(database && fails(DB)) && !io) return 0;
    errno = error_number;
    return 1;
}

static int file_fails(int fd)
{
    return io_fails(fd >= 0 && fd < FILES && atomic_load(&of_database[fd]));
}

/* A read or a write: it fails, is interrupted, or does *n bytes. */
static int transfer_fails(int fd, size_t *n)
{
    if (file_fails(fd)) return 1;
    if (fails(INTERRUPTED)) {
        errno = EINTR;
        return 1;
    }
    if (*n > 1 && fails(SHORT)) *n /= 2;
    return 0;
}

static int standard(int fd)
{
    return fd == STDOUT_FILENO || fd == STDERR_FILENO;
}

/* PASS: a function of files whose failure is -1. */
#define PASS(type, name, parameters, arguments, failure)                                                                           \
    DECLARE(name);                                                                                                                 \
    type name parameters                                                                                                           \
    {                                                                                                                              \
        return failure ? (type)-1 : NEXT(name) arguments;                                                                          \
    }

static int opened(const char *path, int fd)
{
    if (fd >= 0 && fd < FILES) atomic_store(&of_database[fd], (char)is_database(path));
    return fd;
}

#define OPEN(name)                                                                                                                 \
    DECLARE(name);                                                                                                                 \
    int name(const char *path, int flags, ...)                                                                                     \
    {                                                                                                                              \
        va_list list;                                                                                                              \
        va_start(list, flags);                                                                                                     \
        const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;                                            \
        va_end(list);                                                                                                              \
        return io_fails(is_database(path)) ? -1 : opened(path, NEXT(name)(path, flags, mode));                                     \
    }
OPEN(open)
OPEN(open64)

/* Locks, of SQLite alone: other commands of fcntl are not of files. */
#define FCNTL(name)                                                                                                                \
    DECLARE(name);                                                                                                                 \
    int name(int fd, int command, ...)                                                                                             \
    {                                                                                                                              \
        va_list list;                                                                                                              \
        va_start(list, command);                                                                                                   \
        void *argument = va_arg(list, void *);                                                                                     \
        va_end(list);                                                                                                              \
        const int lock = command == F_SETLK && fd >= 0 && fd < FILES && atomic_load(&of_database[fd]);                             \
        if (lock && fails(DB)) {                                                                                                   \
            errno = error_number;                                                                                                  \
            return -1;                                                                                                             \
        }                                                                                                                          \
        return NEXT(name)(fd, command, argument);                                                                                  \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

DECLARE(fopen);
FILE *fopen(const char *path, const char *mode)
{
    FILE *f = io_fails(0) ? NULL : NEXT(fopen)(path, mode);
    if (f) opened(path, fileno(f));
    return f;
}

DECLARE(close);
int close(int fd)
{
    if (fd >= 0 && fd < FILES) atomic_store(&of_database[fd], 0); /* the number may be another file's soon */
    return NEXT(close)(fd);
}

DECLARE(read);
ssize_t read(int fd, void *data, size_t n)
{
    return transfer_fails(fd, &n) ? -1 : NEXT(read)(fd, data, n);
}

DECLARE(write);
ssize_t write(int fd, const void *data, size_t n)
{
    if (standard(fd)) return NEXT(write)(fd, data, n);
    return transfer_fails(fd, &n) ? -1 : NEXT(write)(fd, data, n);
}

/* As the C library does when the write below it fails: ferror() sees it. */
static void stream_failed(FILE *f)
{
    f->_flags |= 0x20; /* _IO_ERR_SEEN */
}

DECLARE(fwrite);
size_t fwrite(const void *data, size_t size, size_t n, FILE *f)
{
    if (standard(fileno(f))) return NEXT(fwrite)(data, size, n, f);
    if (!io_fails(0)) return NEXT(fwrite)(data, size, n, f);
    stream_failed(f);
    return 0;
}

DECLARE(fflush);
int fflush(FILE *f)
{
    if (!f || standard(fileno(f))) return NEXT(fflush)(f);
    if (!io_fails(0)) return NEXT(fflush)(f);
    stream_failed(f);
    return EOF;
}

DECLARE(getline);
ssize_t getline(char **line, size_t *capacity, FILE *f)
{
    if (fails(ALLOC)) { /* the line did not fit: neither the end of the file nor an error of its */
        errno = ENOMEM;
        return -1;
    }
    if (!io_fails(0)) return NEXT(getline)(line, capacity, f);
    stream_failed(f);
    return -1;
}

DECLARE(mmap);
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 ? file_fails(fd) : fails(ALLOC)) {
        if (fd < 0) errno = ENOMEM;
        return MAP_FAILED;
    }
    return NEXT(mmap)(at, n, protection, flags, fd, offset);
}

DECLARE(opendir);
DIR *opendir(const char *path)
{
    return io_fails(0) ? NULL : NEXT(opendir)(path);
}

DECLARE(readdir);
struct dirent *readdir(DIR *d)
{
    return io_fails(0) ? NULL : NEXT(readdir)(d);
}

PASS(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n))
PASS(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n))
PASS(ssize_t, pread64, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n))
PASS(ssize_t, pwrite64, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n))
/* Whether a sync of it is left out. */
static int is_forgotten(int fd)
{
    char link[40], path[4096];
    if (!unsynced || !atomic_load(&on)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    return strstr(path, unsynced) != NULL;
}

#define SYNC(name)                                                                                                                 \
    DECLARE(name);                                                                                                                 \
    int name(int fd)                                                                                                               \
    {                                                                                                                              \
        if (file_fails(fd)) return -1;                                                                                             \
        return is_forgotten(fd) ? 0 : NEXT(name)(fd);                                                                              \
    }
SYNC(fsync)
SYNC(fdatasync)

PASS(int, ftruncate, (int fd, off_t n), (fd, n), file_fails(fd))
PASS(int, ftruncate64, (int fd, off_t n), (fd, n), file_fails(fd))
PASS(int, rename, (const char *from, const char *to), (from, to), io_fails(0))
PASS(int, mkdir, (const char *path, mode_t mode), (path, mode), io_fails(0))
PASS(int, unlink, (const char *path), (path), io_fails(is_database(path)))

DECLARE(socket);
int socket(int domain, int type, int protocol)
{
    if (domain == AF_INET || domain == AF_INET6) atomic_fetch_add(&sockets, 1);
    return NEXT(socket)(domain, type, protocol);
}
#endif
