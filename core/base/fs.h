/* Files: whole reads, maps, and writes that are either there completely or not at all. */
#ifndef TARE_CORE_BASE_FS_H
#define TARE_CORE_BASE_FS_H

#include "base/str.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

/* Whether the errno of a question about a path answers it: nothing is to be had there. A disk that fails, or no memory, says nothing. */
bool fs_is_answer(int error);
/* True also where the system cannot tell: whoever then opens the file hears why. */
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
/* Whether something has this name. TARE_E_IO where that cannot be told: a folder on the way may not be entered, or is none. */
tare_status fs_there(const char *path, bool *there, struct err *e);
/* TARE_E_CONFIG "PATH is a folder; name a regular file": what is there is no regular file (a folder, a pipe, a device, a socket). What is not there, or
 * cannot be looked at, is for who opens it to tell. given: a pipe that the program was started with (/dev/stdin, /dev/fd/N) will do. */
tare_status fs_check_regular(const char *path, bool given, struct err *e);
/* A named pipe and a device are TARE_E_IO, but for one that the program was started with (/dev/stdin, /dev/fd/N). */
tare_status fs_read_all(const char *path, struct str *out, struct err *e);
/* A file that somebody writes by hand (a configuration, a template): a regular one, or a pipe that the program was started with (/dev/stdin,
 * /dev/fd/N), of at most FS_WRITTEN bytes. What has no end (/dev/zero) and what would be waited for (a named pipe) is TARE_E_CONFIG. */
enum { FS_WRITTEN = 16 << 20 };
tare_status fs_read_written(const char *path, struct str *out, struct err *e);
/* A file of lines, such as a data set: as fs_read_written, of any size, but no line is longer than FS_LINE bytes, which a stream without an end would be. */
enum { FS_LINE = 64 << 20 };
tare_status fs_read_lines(const char *path, struct str *out, struct err *e);
tare_status fs_mkdirs(const char *path, struct err *e); /* like mkdir -p, with the names of new folders synced */
/* Calls entry() for every name in the folder but . and .., in no order, until one fails. A folder that is not there has none. */
typedef tare_status (*fs_entry)(void *ctx, const char *folder, const char *name, struct err *e);
tare_status fs_each(const char *folder, fs_entry entry, void *ctx, struct err *e);
/* The names in a folder for which keep is not 0, in their order; keep NULL: all. TARE_E_NOT_FOUND where there is no such folder. */
struct fs_list {
    struct dirent **entry;
    int n;
};
tare_status fs_list(const char *folder, int (*keep)(const struct dirent *), struct fs_list *out, struct err *e);
void fs_list_free(struct fs_list *l);
tare_status fs_remove_tree(const char *path, struct err *e);
/* Writes beside, syncs, renames: after a crash the file is the old one or the new one. What is no regular file (/dev/stdout, a pipe) is
 * written to as it is; a symbolic link stays, and its target is written. */
tare_status fs_write_atomic(const char *path, const void *data, int64_t n, struct err *e);
tare_status fs_sync_dir(const char *path, struct err *e);
/* Copies one file, with its data synced. */
tare_status fs_copy(const char *from, const char *to, struct err *e);
/* Appends to f, which was opened for path. */
tare_status fs_put(FILE *f, const char *path, const void *data, int64_t n, struct err *e);
/* Closes f, having flushed and synced it; every failure on the way (a full disk) is reported with path. f is closed in any case. */
tare_status fs_close_synced(FILE *f, const char *path, struct err *e);
void fs_close_at(FILE **f); /* of a file that was read */

struct fs_map { /* a file mapped for reading */
    const unsigned char *data;
    int64_t size;
};
tare_status fs_map(const char *path, struct fs_map *out, struct err *e);
void fs_unmap(struct fs_map *m);

/* "a/b" + "c" -> "a/b/c"; c absolute: c alone. out of FS_PATH bytes; too long is an error. */
enum { FS_PATH = 4096 };
tare_status fs_join(char *out, const char *a, const char *b, struct err *e);
/* Whether a name that a file gives for another one stays in that file's folder: relative, and no part of it is "..". */
bool fs_is_inside(const char *name);
/* Whether the open file is still the one at path: what is appended to one that was removed is lost in silence. TARE_E_IO. */
tare_status fs_check_open(int fd, const char *path, struct err *e);
/* NAME-XXXXXX in TMPDIR where that is a folder that can be written, else in /tmp; for mkstemp and mkdtemp. out of FS_PATH bytes. */
tare_status fs_temporary(char *out, const char *name, struct err *e);
/* The folder of a path ("." for a bare name). */
void fs_dirname(char *out, const char *path);

/* XXH3 of bytes and of files, 64 bits; and of 128 bits, the high half first. */
void fs_hash128(const void *data, int64_t n, uint64_t out[2]);
uint64_t fs_hash(const void *data, int64_t n, uint64_t seed);
tare_status fs_hash_file(const char *path, uint64_t *out, struct err *e);

#endif
