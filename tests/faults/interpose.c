/* Preloaded into tare (LD_PRELOAD): fails chosen calls of the C library, for tests of what the program does then.
 *
 *   TARE_INTERPOSE   what fails: KIND=N fails the N-th call of that kind in each process named tare, KIND=N+ that one and all that
 *                    follow. Kinds: alloc (malloc and its kin return NULL), io (open, read, write, fsync, rename, ... give the
 *                    error TARE_INTERPOSE_ERRNO, a number, EIO unless set), short (a write or read of more than one byte does half)
 *   TARE_INTERPOSE_TRAP    set: SIGTRAP at the fault, so that a debugger shows where it is
 *   TARE_INTERPOSE_COUNT   a file to which each process adds a line at its end: "alloc N io N net N"; net: sockets of the internet
 *
 * Calls before main, of other programs, and of the standard streams' descriptors 1 and 2 are let through and not counted. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
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

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);

#pragma GCC visibility push(default) /* what is hidden does not take the place of the C library's */
enum kind { ALLOC, IO, SHORT, KINDS };
static const char *const NAMES[KINDS] = {"alloc", "io", "short"};
static struct {
    atomic_long calls;
    long at;    /* 0: none fails */
    int onward; /* and all after it */
} kinds[KINDS];
static atomic_int on, trap;
static atomic_long sockets;
static int error_number = EIO;

static int fails(enum kind k)
{
    if (!atomic_load(&on)) return 0;
    const long call = atomic_fetch_add(&kinds[k].calls, 1) + 1;
    if (!kinds[k].at || (call != kinds[k].at && !(kinds[k].onward && call > kinds[k].at))) return 0;
    if (trap) raise(SIGTRAP);
    return 1;
}

static int io_fails(void)
{
    if (!fails(IO)) return 0;
    errno = error_number;
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    if (strcmp(program_invocation_short_name, "tare")) return;
    const char *what = getenv("TARE_INTERPOSE"), *number = getenv("TARE_INTERPOSE_ERRNO");
    for (int k = 0; what && k < KINDS; k++) {
        const size_t n = strlen(NAMES[k]);
        if (strncmp(what, NAMES[k], n) || what[n] != '=') continue;
        char *end;
        kinds[k].at = strtol(what + n + 1, &end, 10);
        kinds[k].onward = *end == '+';
    }
    trap = getenv("TARE_INTERPOSE_TRAP") != NULL;
    if (number) error_number = atoi(number);
    atomic_store(&on, 1);
}

__attribute__((destructor)) static void end(void)
{
    if (!atomic_exchange(&on, 0)) return;
    const char *path = getenv("TARE_INTERPOSE_COUNT");
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (fd < 0) return;
    dprintf(fd, "alloc %ld io %ld net %ld\n", atomic_load(&kinds[ALLOC].calls), atomic_load(&kinds[IO].calls),
            atomic_load(&sockets));
    close(fd);
}

/* ---- memory */
static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t n)
{
    return fails(ALLOC) ? no_memory() : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(ALLOC) ? no_memory() : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails(ALLOC) ? no_memory() : __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails(ALLOC) ? no_memory() : __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    void *p = fails(ALLOC) ? NULL : __libc_memalign(alignment, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

/* ---- files */
#define NEXT(name) ((__typeof__(&name))next(&next_##name, #name))
static void *next(void *_Atomic *slot, const char *name)
{
    void *f = atomic_load(slot);
    if (!f) atomic_store(slot, f = dlsym(RTLD_NEXT, name));
    return f;
}
#define DECLARE(name) static void *_Atomic next_##name

static int standard(int fd)
{
    return fd == STDOUT_FILENO || fd == STDERR_FILENO;
}

/* PASS: a function of files whose failure is -1. */
#define PASS(type, name, parameters, arguments)                                                                                    \
    DECLARE(name);                                                                                                                 \
    type name parameters                                                                                                           \
    {                                                                                                                              \
        return io_fails() ? (type)-1 : NEXT(name) arguments;                                                                       \
    }

DECLARE(open);
int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return io_fails() ? -1 : NEXT(open)(path, flags, mode);
}

DECLARE(open64);
int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return io_fails() ? -1 : NEXT(open64)(path, flags, mode);
}

DECLARE(fopen);
FILE *fopen(const char *path, const char *mode)
{
    return io_fails() ? NULL : NEXT(fopen)(path, mode);
}

DECLARE(read);
ssize_t read(int fd, void *data, size_t n)
{
    if (io_fails()) return -1;
    return NEXT(read)(fd, data, n > 1 && fails(SHORT) ? n / 2 : n);
}

DECLARE(write);
ssize_t write(int fd, const void *data, size_t n)
{
    if (standard(fd)) return NEXT(write)(fd, data, n);
    if (io_fails()) return -1;
    return NEXT(write)(fd, data, n > 1 && fails(SHORT) ? n / 2 : n);
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
    if (!io_fails()) return NEXT(fwrite)(data, size, n, f);
    stream_failed(f);
    return 0;
}

DECLARE(fflush);
int fflush(FILE *f)
{
    if (!f || standard(fileno(f))) return NEXT(fflush)(f);
    if (!io_fails()) return NEXT(fflush)(f);
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
    if (!io_fails()) return NEXT(getline)(line, capacity, f);
    stream_failed(f);
    return -1;
}

DECLARE(mmap);
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 ? io_fails() : fails(ALLOC)) {
        if (fd < 0) errno = ENOMEM;
        return MAP_FAILED;
    }
    return NEXT(mmap)(at, n, protection, flags, fd, offset);
}

DECLARE(opendir);
DIR *opendir(const char *path)
{
    return io_fails() ? NULL : NEXT(opendir)(path);
}

DECLARE(readdir);
struct dirent *readdir(DIR *d)
{
    return io_fails() ? NULL : NEXT(readdir)(d);
}

PASS(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at))
PASS(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
PASS(ssize_t, pread64, (int fd, void *data, size_t n, off_t at), (fd, data, n, at))
PASS(ssize_t, pwrite64, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
PASS(int, fsync, (int fd), (fd))
PASS(int, fdatasync, (int fd), (fd))
PASS(int, ftruncate, (int fd, off_t n), (fd, n))
PASS(int, rename, (const char *from, const char *to), (from, to))
PASS(int, mkdir, (const char *path, mode_t mode), (path, mode))
PASS(int, unlink, (const char *path), (path))

DECLARE(socket);
int socket(int domain, int type, int protocol)
{
    if (domain == AF_INET || domain == AF_INET6) atomic_fetch_add(&sockets, 1);
    return NEXT(socket)(domain, type, protocol);
}
