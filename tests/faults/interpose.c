/* Preloaded into tare (LD_PRELOAD): makes chosen calls of the C library fail, to test what the
 * program does then. The variables below begin with TARE_INTERPOSE.
 *
 *   (no suffix)  KIND=N fails the N-th call of that kind in each process named tare, KIND=N+ that
 *                call and all later ones. KIND=@PATH.N[+] counts only the calls of one path (the
 *                return addresses up the stack, as one number), whose order threads do not change
 *       alloc    malloc and similar functions return NULL
 *       io       open, read, write, fsync, rename, flock, fclose, ... give the error _ERRNO
 *       db       the same, and locks, but only for SQLite's files: runs.db*
 *       short    a write or read of more than one byte transfers half
 *       eintr    a write or read is interrupted before it transfers anything
 *       look     queries about files (stat, access, readlink, realpath, statvfs, ...) give _ERRNO
 *       spawn    posix_spawn, fork, pthread_create, pipe, socketpair, memfd_create fail
 *   _ERRNO       the number of the error (default EIO)
 *   _PATHS       a file; each process appends at its end, for each path, "KIND PATH CALLS"
 *   _UNSYNCED    a text: fsync and fdatasync do nothing for paths that contain it
 *   _PROCESS     first: only in the first process named tare, not in those that it starts; later:
 *                only in these; rank1: only in rank 1 of those that mpirun started
 *   _OWN         set: only the program's own calls (MPI's libraries do not survive every failure)
 *   _PLANT       acts as a faulty program, to test the tests: hide (a failed file operation reports
 *                success), crash (SIGSEGV), quiet (exit status 1 without a message), done (0 without
 *                a result), wait (for ever)
 *   _TRAP        set: SIGTRAP at the fault, so that a debugger shows the place
 *   _COUNT       a file; each process appends at its end "alloc N io N ... failed N net N"; failed:
 *                calls that were made to fail; net: internet sockets
 *
 * Calls before main, of other programs, and on the descriptors 1 and 2 always succeed and are not
 * counted. With TARE_WRAPPED this file is a part of tare instead, for sanitizers with their own
 * allocator: the linker redirects tare's allocations to this file (--wrap); no other call fails. */
#define _GNU_SOURCE
#ifndef TARE_WRAPPED
#include "next.h"
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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

#pragma GCC visibility push(default) /* hidden functions do not replace those of the C library */
enum kind { ALLOC, IO, DB, SHORT, INTERRUPTED, LOOK, SPAWN, KINDS };
static const char *const NAMES[KINDS] = {"alloc", "io", "db", "short", "eintr", "look", "spawn"};
static struct {
    atomic_long calls;
    unsigned long path; /* 0: at counts the calls of the kind; else those of this path */
    long at;            /* 0: none fails */
    int onward;         /* and all later ones */
    atomic_int begun;
} kinds[KINDS];
static atomic_int on, trap;
static atomic_long sockets, failed;
static int error_number = EIO;
static unsigned long own;      /* only calls of the module that begins there fail; 0: of all */
static const char *plant = ""; /* the action at the fault, instead of a failure */
static const char *unsynced;   /* paths that contain it are not synced; NULL: all are */

/* ---- paths */
enum { FRAMES = 32, PLACES = 1 << 15 };
static struct place {
    atomic_ulong path;
    atomic_long calls;
} places[KINDS][PLACES];
static int by_path; /* calls are counted per path */
/* The unwinder's own allocations are not counted. This TLS model needs no memory at first use. */
static _Thread_local int inside __attribute__((tls_model("initial-exec")));

/* Returns the start of the module of an address; 0: no module. (dladdr() is far slower.) */
static unsigned long module_of(void *address)
{
    struct dl_find_object module;
    return _dl_find_object(address, &module) ? 0 : (unsigned long)module.dlfo_map_start;
}

/* A module's address differs between processes, so addresses count from its start. */
static unsigned long in_module(void *address)
{
    return (unsigned long)address - module_of(address);
}

/* Returns the return addresses up the stack as one number (FNV-1a). */
static unsigned long path_here(void)
{
    void *frames[FRAMES];
    const int n = backtrace(frames, FRAMES);
    unsigned long hash = 0xcbf29ce484222325;
    for (int i = 0; i < n; i++) hash = (hash ^ in_module(frames[i])) * 0x100000001b3;
    return hash ? hash : 1;
}

/* The table only grows, without locks: fork() may be called while another thread is here. */
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

/* Acts as a faulty program. Returns 1 if the call fails as in a correct one. */
static int planted(void)
{
    if (!strcmp(plant, "crash")) raise(SIGSEGV);
    if (!strcmp(plant, "quiet")) _exit(1);
    if (!strcmp(plant, "done")) _exit(0);
    while (!strcmp(plant, "wait")) pause();
    return 1;
}

/* Inlined, so that the return address is that of the function here that the program called. */
#define INLINE static inline __attribute__((always_inline))

INLINE int fails(enum kind k)
{
    if (!atomic_load(&on) || inside) return 0;
    if (own && module_of(__builtin_return_address(0)) != own) return 0;
    const long call = atomic_fetch_add(&kinds[k].calls, 1) + 1, at = kinds[k].at;
    if (by_path ? !path_fails(k) : !at || (call != at && !(kinds[k].onward && call > at))) return 0;
    atomic_fetch_add(&failed, 1);
    if (trap) raise(SIGTRAP);
    return planted();
}

/* ---- settings */
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

/* Returns true if this process's calls fail. Processes that it starts have its environment. */
static int is_meant(void)
{
    const char *which = getenv("TARE_INTERPOSE_PROCESS"), *first = getenv("TARE_INTERPOSE_FIRST");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!which) return 1;
    if (!strncmp(which, "rank", 4)) return rank && !strcmp(rank, which + 4);
    if (!first) setenv("TARE_INTERPOSE_FIRST", "begun", 1);
    return strcmp(which, first ? "later" : "first") == 0;
}

__attribute__((constructor)) static void begin(void)
{
    if (strcmp(program_invocation_short_name, "tare") || !is_meant()) return;
    const char *what = getenv("TARE_INTERPOSE"), *number = getenv("TARE_INTERPOSE_ERRNO");
    for (int k = 0; what && k < KINDS; k++) {
        const size_t n = strlen(NAMES[k]);
        if (strncmp(what, NAMES[k], n) || what[n] != '=') continue;
        chosen((enum kind)k, what + n + 1);
    }
    if (getenv("TARE_INTERPOSE_PATHS")) by_path = 1;
    if (by_path) path_here(); /* the first call loads the unwinder */
    unsynced = getenv("TARE_INTERPOSE_UNSYNCED");
    if (getenv("TARE_INTERPOSE_PLANT")) plant = getenv("TARE_INTERPOSE_PLANT");
    if (getenv("TARE_INTERPOSE_OWN")) own = module_of((void *)getauxval(AT_ENTRY));
    trap = getenv("TARE_INTERPOSE_TRAP") != NULL;
    if (number) error_number = atoi(number);
    atomic_store(&on, 1);
}

/* Opens the file named by a variable, to append to; -1: none. */
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

/* Returns true for a call of kind k, and of SQLite's files. */
INLINE int call_fails(enum kind k, int database)
{
    const int one = fails(k);
    if (!(database && fails(DB)) && !one) return 0;
    errno = error_number;
    return 1;
}

INLINE int io_fails(int database)
{
    return call_fails(IO, database);
}

static int is_of_database(int fd)
{
    return fd >= 0 && fd < FILES && atomic_load(&of_database[fd]);
}

INLINE int file_fails(int fd)
{
    return io_fails(is_of_database(fd));
}

/* Returns the error of a failed call, or, to hide it, the result of a successful one. */
static long outcome(long done)
{
    return strcmp(plant, "hide") ? -1 : done;
}

/* A read or a write: it fails, is interrupted, or transfers *n bytes. */
INLINE int transfer_fails(int fd, size_t *n)
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

/* PASS: a function whose failure is -1. done: its result when it transfers everything. */
#define PASS(type, name, parameters, arguments, failure, done)                                                                     \
    DECLARE(name);                                                                                                                 \
    type name parameters                                                                                                           \
    {                                                                                                                              \
        return failure ? (type)outcome(done) : NEXT(name) arguments;                                                               \
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

/* Locks, of SQLite only: other commands of fcntl do not concern files. */
#define FCNTL(name)                                                                                                                \
    DECLARE(name);                                                                                                                 \
    int name(int fd, int command, ...)                                                                                             \
    {                                                                                                                              \
        va_list list;                                                                                                              \
        va_start(list, command);                                                                                                   \
        void *argument = va_arg(list, void *);                                                                                     \
        va_end(list);                                                                                                              \
        const int lock = command == F_SETLK && is_of_database(fd);                                                                 \
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
    if (fd >= 0 && fd < FILES) atomic_store(&of_database[fd], 0); /* the number may be reused soon */
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
    return transfer_fails(fd, &n) ? outcome((long)n) : NEXT(write)(fd, data, n);
}

/* Like the C library after a failed write below it: ferror() returns true. */
static void stream_failed(FILE *f)
{
    f->_flags |= 0x20; /* _IO_ERR_SEEN */
}

DECLARE(fwrite);
size_t fwrite(const void *data, size_t size, size_t n, FILE *f)
{
    if (standard(fileno(f))) return NEXT(fwrite)(data, size, n, f);
    if (!io_fails(0)) return NEXT(fwrite)(data, size, n, f);
    if (outcome(0) == 0) return n;
    stream_failed(f);
    return 0;
}

DECLARE(fread);
size_t fread(void *data, size_t size, size_t n, FILE *f)
{
    if (!io_fails(0)) return NEXT(fread)(data, size, n, f);
    if (outcome(0) == 0) return 0;
    stream_failed(f);
    return 0;
}

/* The stream is closed all the same. Closing one that was only read cannot lose anything. */
DECLARE(fclose);
int fclose(FILE *f)
{
    const int loses = !(f->_flags & 8) && !standard(fileno(f)) && io_fails(0), why = errno; /* 8: _IO_NO_WRITES */
    const int closed = NEXT(fclose)(f);
    if (loses) errno = why;
    return loses ? (int)outcome(0) : closed;
}

DECLARE(fflush);
int fflush(FILE *f)
{
    if (!f || standard(fileno(f))) return NEXT(fflush)(f);
    if (!io_fails(0)) return NEXT(fflush)(f);
    if (outcome(0) == 0) return 0;
    stream_failed(f);
    return EOF;
}

DECLARE(getline);
ssize_t getline(char **line, size_t *capacity, FILE *f)
{
    if (fails(ALLOC)) { /* the line did not fit: neither the end of the file nor a read error */
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

PASS(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n), (long)n)
PASS(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n), (long)n)
PASS(ssize_t, pread64, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n), (long)n)
PASS(ssize_t, pwrite64, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), transfer_fails(fd, &n), (long)n)
/* Returns true if a sync of it is skipped. */
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
        if (file_fails(fd)) return (int)outcome(0);                                                                                \
        return is_forgotten(fd) ? 0 : NEXT(name)(fd);                                                                              \
    }
SYNC(fsync)
SYNC(fdatasync)

PASS(int, ftruncate, (int fd, off_t n), (fd, n), file_fails(fd), 0)
PASS(int, ftruncate64, (int fd, off_t n), (fd, n), file_fails(fd), 0)
PASS(int, rename, (const char *from, const char *to), (from, to), io_fails(0), 0)
PASS(int, mkdir, (const char *path, mode_t mode), (path, mode), io_fails(0), 0)
PASS(int, unlink, (const char *path), (path), io_fails(is_database(path)), 0)

PASS(int, remove, (const char *path), (path), io_fails(0), 0)
PASS(int, nftw, (const char *path, __nftw_func_t each, int most, int flags), (path, each, most, flags), io_fails(0), 0)
PASS(int, scandir,
     (const char *path, struct dirent ***list, int (*keep)(const struct dirent *),
      int (*order)(const struct dirent **, const struct dirent **)),
     (path, list, keep, order), io_fails(0), 0)
PASS(int, flock, (int fd, int operation), (fd, operation), io_fails(0), 0)
PASS(int, syncfs, (int fd), (fd), io_fails(0), 0)
PASS(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence), file_fails(fd), at)
PASS(off64_t, lseek64, (int fd, off64_t at, int whence), (fd, at, whence), file_fails(fd), at)

DECLARE(mkdtemp);
char *mkdtemp(char *path)
{
    return io_fails(0) ? NULL : NEXT(mkdtemp)(path);
}

/* ---- queries about files */
#define LOOKS(name, parameters, arguments, database) PASS(int, name, parameters, arguments, call_fails(LOOK, database), 0)
LOOKS(stat, (const char *path, struct stat *out), (path, out), is_database(path))
LOOKS(stat64, (const char *path, struct stat64 *out), (path, out), is_database(path))
LOOKS(lstat, (const char *path, struct stat *out), (path, out), is_database(path))
LOOKS(lstat64, (const char *path, struct stat64 *out), (path, out), is_database(path))
LOOKS(fstat, (int fd, struct stat *out), (fd, out), is_of_database(fd))
LOOKS(fstat64, (int fd, struct stat64 *out), (fd, out), is_of_database(fd))
LOOKS(access, (const char *path, int mode), (path, mode), is_database(path))
LOOKS(statvfs, (const char *path, struct statvfs *out), (path, out), 0)
PASS(ssize_t, readlink, (const char *path, char *out, size_t n), (path, out, n), call_fails(LOOK, is_database(path)), 0)

DECLARE(realpath);
char *realpath(const char *path, char *out)
{
    return call_fails(LOOK, 0) ? NULL : NEXT(realpath)(path, out);
}

/* ---- processes, threads, pipes */
INLINE int none_left(void)
{
    return call_fails(SPAWN, 0);
}

PASS(pid_t, fork, (void), (), none_left(), 1)
PASS(int, pipe, (int ends[2]), (ends), none_left(), 0)
PASS(int, pipe2, (int ends[2], int flags), (ends, flags), none_left(), 0)
PASS(int, socketpair, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends), none_left(), 0)
PASS(int, memfd_create, (const char *name, unsigned flags), (name, flags), none_left(), 0)

/* CODE: a function whose failure is the error's number. */
#define CODE(name, parameters, arguments)                                                                                          \
    DECLARE(name);                                                                                                                 \
    int name parameters                                                                                                            \
    {                                                                                                                              \
        return none_left() ? error_number : NEXT(name) arguments;                                                                  \
    }
CODE(posix_spawn,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const *argv, char *const *environment),
     (pid, path, actions, attributes, argv, environment))
CODE(posix_spawnp,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const *argv, char *const *environment),
     (pid, path, actions, attributes, argv, environment))
CODE(pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
     (thread, attributes, body, argument))

DECLARE(socket);
int socket(int domain, int type, int protocol)
{
    if (domain == AF_INET || domain == AF_INET6) atomic_fetch_add(&sockets, 1);
    return NEXT(socket)(domain, type, protocol);
}
#endif
