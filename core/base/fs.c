#define _GNU_SOURCE
#define XXH_INLINE_ALL
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <xxhash.h>
#pragma GCC diagnostic pop

bool fs_is_answer(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP || error == ENAMETOOLONG || error == EINVAL;
}

bool fs_exists(const char *path)
{
    return access(path, F_OK) == 0 || !fs_is_answer(errno);
}

bool fs_is_dir(const char *path)
{
    struct stat s;
    return stat(path, &s) ? !fs_is_answer(errno) : S_ISDIR(s.st_mode);
}

tare_status fs_there(const char *path, bool *there, struct err *e)
{
    struct stat s;
    *there = stat(path, &s) == 0;
    if (!*there && errno != ENOENT) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    return TARE_OK;
}

static tare_status check_line_length(const char *path, const char *line, const char *end, struct err *e)
{
    if (end - line <= FS_LINE) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "%s: a line is longer than %d MiB; the file must have one JSON object per line", path, FS_LINE >> 20);
}

/* Read at least `most` bytes (or up to the end), and at most one buffer more. lines: refuse lines
 * longer than FS_LINE. */
static tare_status read_until(const char *path, int64_t most, bool lines, struct str *out, struct err *e)
{
    OWNED(fs_close_at) FILE *f = fopen(path, "rb");
    if (!f) FAIL(e, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: %s", path, strerror(errno));
    str_clear(out);
    int64_t line = 0; /* offset at which the last line begins */
    while (out->size <= most) {
        if (str_reserve(out, 1 << 16, e)) return err_prefix(e, "%s", path);
        const size_t n = fread(out->data + out->size, 1, (size_t)(out->capacity - out->size - 1), f);
        const char *newline, *end = out->data + out->size + n;
        for (char *at = out->data + out->size; lines && (newline = memchr(at, '\n', (size_t)(end - at))); at = out->data + line) {
            TRY(check_line_length(path, out->data + line, newline, e));
            line = newline + 1 - out->data;
        }
        if (lines) TRY(check_line_length(path, out->data + line, end, e));
        out->size += (int64_t)n;
        out->data[out->size] = 0;
        if (!n) break;
    }
    if (ferror(f)) FAIL(e, TARE_E_IO, "%s: cannot be read: %s", path, strerror(errno));
    return TARE_OK;
}

/* Test for a path given by the process that started the program, which may be a pipe. */
static bool is_given(const char *path)
{
    return !strcmp(path, "/dev/stdin") || !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/self/fd/", 14);
}

tare_status fs_check_regular(const char *path, bool given, struct err *e)
{
    struct stat s;
    if ((given && is_given(path)) || stat(path, &s) || S_ISREG(s.st_mode)) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "%s is %s; name a regular file", path,
         S_ISDIR(s.st_mode)    ? "a folder"
         : S_ISFIFO(s.st_mode) ? "a pipe"
                               : "a device or a socket");
}

static int64_t machine_memory(void)
{
    const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && page > 0 ? pages * page : INT64_MAX;
}

tare_status fs_read_all(const char *path, struct str *out, struct err *e)
{
    struct stat s;
    const bool there = !is_given(path) && !stat(path, &s);
    if (there && S_ISFIFO(s.st_mode)) FAIL(e, TARE_E_IO, "%s: is a named pipe and would block; use a regular file", path);
    if (there && (S_ISCHR(s.st_mode) || S_ISBLK(s.st_mode)))
        FAIL(e, TARE_E_IO, "%s: is a device and may be endless; use a regular file", path);
    /* a sparse file may be larger than memory, so refuse it before reading */
    if (there && s.st_size > machine_memory())
        FAIL(e, TARE_E_IO, "%s: has %.1f GiB, more than this machine's memory; it is damaged or the wrong file, replace it", path,
             (double)s.st_size / (1 << 30));
    return read_until(path, INT64_MAX, false, out, e);
}

tare_status fs_read_written(const char *path, struct str *out, struct err *e)
{
    TRY(fs_check_regular(path, true, e));
    TRY(read_until(path, FS_WRITTEN, false, out, e));
    if (out->size > FS_WRITTEN)
        FAIL(e, TARE_E_CONFIG, "%s has more than %d MiB, the limit for a hand-written file; name another one", path,
             FS_WRITTEN >> 20);
    return TARE_OK;
}

tare_status fs_read_lines(const char *path, struct str *out, struct err *e)
{
    TRY(fs_check_regular(path, true, e));
    return read_until(path, INT64_MAX, true, out, e);
}

tare_status fs_each(const char *folder, fs_entry entry, void *ctx, struct err *e)
{
    DIR *d = opendir(folder);
    if (!d && errno == ENOENT) return TARE_OK;
    if (!d) FAIL(e, TARE_E_IO, "%s: %s", folder, strerror(errno));
    tare_status status = TARE_OK;
    while (!status) {
        errno = 0;
        const struct dirent *found = readdir(d);
        if (!found && errno)
            status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: cannot be listed: %s", folder, strerror(errno));
        if (!found) break;
        if (strcmp(found->d_name, ".") && strcmp(found->d_name, "..")) status = entry(ctx, folder, found->d_name, e);
    }
    closedir(d);
    return status;
}

tare_status fs_list(const char *folder, int (*keep)(const struct dirent *), struct fs_list *out, struct err *e)
{
    *out = (struct fs_list){0};
    const int n = scandir(folder, &out->entry, keep, alphasort);
    if (n < 0) FAIL(e, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: cannot be listed: %s", folder, strerror(errno));
    out->n = n;
    return TARE_OK;
}

void fs_list_free(struct fs_list *l)
{
    for (int i = 0; i < l->n; i++) free(l->entry[i]);
    free(l->entry);
}

/* Sync the name of a new folder. A folder that may be written but not read cannot be opened, so it
 * is not synced. */
static tare_status sync_name(const char *made, struct err *e)
{
    char parent[FS_PATH];
    fs_dirname(parent, made);
    return access(parent, R_OK) ? TARE_OK : fs_sync_dir(parent, e);
}

tare_status fs_mkdirs(const char *path, struct err *e)
{
    char part[FS_PATH];
    TRY(fs_join(part, path, "", e));
    for (char *p = part + 1;; p++) {
        if (*p && *p != '/') continue;
        const char was = *p;
        *p = 0;
        const bool made = !mkdir(part, 0777);
        if (!made && errno != EEXIST) FAIL(e, TARE_E_IO, "%s: cannot make the folder: %s", part, strerror(errno));
        if (made) TRY(sync_name(part, e));
        *p = was;
        if (!was) break;
    }
    if (!fs_is_dir(path)) FAIL(e, TARE_E_IO, "%s: is not a folder", path);
    return TARE_OK;
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    (void)s, (void)type, (void)ftw;
    return remove(path);
}

tare_status fs_remove_tree(const char *path, struct err *e)
{
    struct stat s;
    if (lstat(path, &s) && errno == ENOENT) return TARE_OK;
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS)) FAIL(e, TARE_E_IO, "%s: cannot be removed: %s", path, strerror(errno));
    return TARE_OK;
}

tare_status fs_sync_dir(const char *path, struct err *e)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    const int failed = fsync(fd) && errno != EINVAL;
    close(fd);
    if (failed) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", path, strerror(errno));
    return TARE_OK;
}

void fs_close_at(FILE **f)
{
    if (*f) fclose(*f);
}

/* errno is only certain here; a later close could not name the error. */
tare_status fs_put(FILE *f, const char *path, const void *data, int64_t n, struct err *e)
{
    errno = 0;
    if (!n || fwrite(data, 1, (size_t)n, f) == (size_t)n) return TARE_OK;
    FAIL(e, TARE_E_IO, "%s: cannot be written: %s; free some space or choose another folder (run.dir, or sft.out)", path,
         strerror(errno ? errno : EIO));
}

tare_status fs_close_synced(FILE *f, const char *path, struct err *e)
{
    int bad = ferror(f) ? EIO : 0;
    if (fflush(f)) bad = errno;
    if (!bad && fsync(fileno(f)) && errno != EINVAL) bad = errno;
    if (fclose(f) && !bad) bad = errno;
    if (bad)
        FAIL(e, TARE_E_IO, "%s: cannot be written: %s; free some space or choose another folder (run.dir, or sft.out)", path,
             strerror(bad));
    return TARE_OK;
}

/* Write to a device or a pipe directly, instead of replacing it with a file. */
static tare_status write_through(const char *path, const void *data, int64_t n, struct err *e)
{
    FILE *f = fopen(path, "wb");
    if (!f) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    const bool whole = !n || fwrite(data, 1, (size_t)n, f) == (size_t)n;
    if (fclose(f) || !whole) FAIL(e, TARE_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    return TARE_OK;
}

/* Resolve links in a path; out is empty if it does not exist. */
static bool real_path(const char *path, char out[PATH_MAX])
{
    if (realpath(path, out)) return true;
    *out = 0;
    return false;
}

tare_status fs_write_atomic(const char *path, const void *data, int64_t n, struct err *e)
{
    char temporary[FS_PATH], dir[FS_PATH], target[PATH_MAX] = "";
    struct stat s = {0}, link = {0};
    if ((stat(path, &s) || lstat(path, &link) || (S_ISLNK(link.st_mode) && !real_path(path, target))) && !fs_is_answer(errno))
        FAIL(e, TARE_E_IO, "%s: cannot be examined: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) FAIL(e, TARE_E_IO, "%s: is a folder; name a file", path);
    if (s.st_mode && !S_ISREG(s.st_mode)) return write_through(path, data, n, e);
    if (*target) path = target; /* keep the symbolic link and replace its target */
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        FAIL(e, TARE_E_INVALID, "%s: path too long", path);
    FILE *f = fopen(temporary, "wb");
    if (!f) FAIL(e, TARE_E_IO, "%s: %s", temporary, strerror(errno));
    tare_status status = fs_put(f, path, data, n, e);
    if (status)
        fclose(f);
    else
        status = fs_close_synced(f, path, e);
    if (!status && rename(temporary, path)) status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: %s", path, strerror(errno));
    if (status) {
        unlink(temporary);
        return status;
    }
    fs_dirname(dir, path);
    return fs_sync_dir(dir, e);
}

tare_status fs_copy(const char *from, const char *to, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(fs_read_all(from, &text, e));
    return fs_write_atomic(to, text.data, text.size, e);
}

tare_status fs_map(const char *path, struct fs_map *out, struct err *e)
{
    *out = (struct fs_map){0};
    /* opening a named pipe would block */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) FAIL(e, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: %s", path, strerror(errno));
    struct stat s;
    const int unknown = fstat(fd, &s) ? errno : 0;
    if (unknown || !S_ISREG(s.st_mode)) {
        close(fd);
        if (unknown) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(unknown));
        FAIL(e, TARE_E_CORRUPT, "%s: is not a regular file", path);
    }
    void *data = s.st_size ? mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    const int bad = errno;
    close(fd);
    if (data == MAP_FAILED) FAIL(e, TARE_E_IO, "%s: cannot be mapped: %s", path, strerror(bad));
    *out = (struct fs_map){data, s.st_size};
    return TARE_OK;
}

void fs_unmap(struct fs_map *m)
{
    if (m->data) munmap((void *)(uintptr_t)m->data, (size_t)m->size);
    *m = (struct fs_map){0};
}

tare_status fs_join(char *out, const char *a, const char *b, struct err *e)
{
    const int n = b[0] == '/' || !a[0] ? snprintf(out, FS_PATH, "%s", b) : snprintf(out, FS_PATH, "%s%s%s", a, b[0] ? "/" : "", b);
    if (n >= FS_PATH) FAIL(e, TARE_E_INVALID, "%s/%s: path longer than %d bytes", a, b, FS_PATH - 1);
    return TARE_OK;
}

static bool same_file(const struct stat *open, const char *path)
{
    struct stat there;
    return !stat(path, &there) && open->st_dev == there.st_dev && open->st_ino == there.st_ino;
}

/* Finds the present path of an open file, FS_PATH bytes. False: it was removed. */
static bool find_open(int fd, const struct stat *open, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, FS_PATH - 1);
    path[n > 0 ? n : 0] = 0;
    return *path == '/' && same_file(open, path);
}

tare_status fs_check_open(int fd, const char *path, struct err *e)
{
    struct stat open;
    char now[FS_PATH];
    if (fstat(fd, &open)) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    if (same_file(&open, path)) return TARE_OK;
    if (*path != '/' && find_open(fd, &open, now))
        FAIL(
            e, TARE_E_IO,
            "%.1000s: is %.1000s now, because this process has changed its working directory or the folder was moved; change back or move it back, and use --resume",
            path, now);
    FAIL(e, TARE_E_IO, "%s: was removed, moved or replaced while it was being written; put its folder back and use --resume", path);
}

bool fs_is_inside(const char *name)
{
    if (!*name || *name == '/') return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/')) return false;
    }
    return true;
}

tare_status fs_temporary(char *out, const char *name, struct err *e)
{
    const char *folder = getenv("TMPDIR");
    char file[64];
    const bool usable = folder && fs_is_dir(folder) && access(folder, W_OK | X_OK) == 0;
    snprintf(file, sizeof file, "%s-XXXXXX", name);
    return fs_join(out, usable ? folder : "/tmp", file, e);
}

void fs_dirname(char *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        snprintf(out, FS_PATH, ".");
    } else {
        snprintf(out, FS_PATH, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
}

uint64_t fs_hash(const void *data, int64_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, (size_t)n, seed);
}

void fs_hash128(const void *data, int64_t n, uint64_t out[2])
{
    const XXH128_hash_t h = XXH3_128bits(data, (size_t)n);
    out[0] = h.high64;
    out[1] = h.low64;
}

tare_status fs_hash_file(const char *path, uint64_t *out, struct err *e)
{
    struct fs_map m;
    TRY(fs_map(path, &m, e));
    *out = fs_hash(m.data, m.size, 0);
    fs_unmap(&m);
    return TARE_OK;
}
