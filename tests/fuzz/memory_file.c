#define _GNU_SOURCE
#include "memory_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED
#endif
#endif
#if defined(WATCHED) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(AT, N) ((void)(AT), (void)(N))
#define ASAN_UNPOISON_MEMORY_REGION(AT, N) ((void)(AT), (void)(N))
#endif

enum { MAPS = 16, ALIGNED = 16, PAGE = 4096 };
static struct {
    void *data, *pages;
    size_t n;
} maps[MAPS];

struct memory_file memory_file(void)
{
    struct memory_file f = {.fd = memfd_create("input", MFD_CLOEXEC)};
    if (f.fd < 0) abort();
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    return f;
}

void memory_file_add(const struct memory_file *f, const void *data, size_t n)
{
    if (n && write(f->fd, data, n) != (ssize_t)n) abort();
}

void memory_file_close(struct memory_file *f)
{
    close(f->fd);
}

/* ---- replacements of mmap and munmap */

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t n);
int __real_munmap(void *at, size_t n);

/* The data end at a page boundary before an unreadable page, except for bytes of alignment,
 * which the sanitizer watches. */
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    int i = 0;
    if (fd < 0 || !n) return __real_mmap(at, n, protection, flags, fd, offset);
    while (i < MAPS && maps[i].data) i++;
    const size_t room = (n + ALIGNED - 1) / ALIGNED * ALIGNED, pages = (room + PAGE - 1) / PAGE * PAGE + PAGE;
    char *whole = __real_mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (i == MAPS || whole == MAP_FAILED || mprotect(whole + pages - PAGE, PAGE, PROT_NONE)) abort();
    char *data = whole + pages - PAGE - room;
    if (pread(fd, data, n, offset) != (ssize_t)n) abort();
    ASAN_POISON_MEMORY_REGION(data + n, room - n);
    maps[i].data = data;
    maps[i].pages = whole;
    maps[i].n = pages;
    return data;
}

int __wrap_munmap(void *at, size_t n)
{
    for (int i = 0; at && i < MAPS; i++) {
        if (maps[i].data != at) continue;
        ASAN_UNPOISON_MEMORY_REGION(maps[i].pages, maps[i].n - PAGE);
        maps[i].data = NULL;
        return __real_munmap(maps[i].pages, maps[i].n);
    }
    return __real_munmap(at, n);
}
