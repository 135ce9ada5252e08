/* Files: whole reads, maps, and atomic writes. */
#ifndef TARE_CORE_BASE_FS_H
#define TARE_CORE_BASE_FS_H

#include "base/str.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

/* Test whether an errno means that a path does not exist. A disk failure or a lack of memory does
 * not. */
bool fs_is_answer(int error);
/* Also returns true if the system cannot answer; opening the file then reports the error. */
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
/* Set *there if something has this name. TARE_E_IO if that cannot be determined, for example
 * because a parent folder may not be entered or is not a folder. */
tare_status fs_there(const char *path, bool *there, struct err *e);
/* TARE_E_CONFIG "PATH is a folder; name a regular file" if the path names anything but a regular
 * file (a folder, a pipe, a device, a socket). A path that does not exist, or cannot be examined,
 * is left for the open to report. given: also accept a pipe with which the program was started
 * (/dev/stdin, /dev/fd/N). */
tare_status fs_check_regular(const char *path, bool given, struct err *e);
/* Named pipes and devices are TARE_E_IO, except those with which the program was started
 * (/dev/stdin, /dev/fd/N). */
tare_status fs_read_all(const char *path, struct str *out, struct err *e);
/* Read a hand-written file (a configuration, a template): a regular file, or a pipe with which the
 * program was started (/dev/stdin, /dev/fd/N), of at most FS_WRITTEN bytes. An endless file
 * (/dev/zero) or one that would block (a named pipe) is TARE_E_CONFIG. */
enum { FS_WRITTEN = 16 << 20 };
tare_status fs_read_written(const char *path, struct str *out, struct err *e);
/* Read a file of lines, such as a data set: like fs_read_written, but of any size. Lines are at
 * most FS_LINE bytes, so that an endless stream is refused. */
enum { FS_LINE = 64 << 20 };
tare_status fs_read_lines(const char *path, struct str *out, struct err *e);
/* like mkdir -p; syncs the names of new folders */
tare_status fs_mkdirs(const char *path, struct err *e);
/* Call entry() for every name in the folder except . and .., in unspecified order, until a call
 * fails. A folder that does not exist has no names. */
typedef tare_status (*fs_entry)(void *ctx, const char *folder, const char *name, struct err *e);
tare_status fs_each(const char *folder, fs_entry entry, void *ctx, struct err *e);
/* List the sorted names in a folder for which keep returns nonzero; keep NULL: all names.
 * TARE_E_NOT_FOUND if the folder does not exist. */
struct fs_list {
    struct dirent **entry;
    int n;
};
tare_status fs_list(const char *folder, int (*keep)(const struct dirent *), struct fs_list *out, struct err *e);
void fs_list_free(struct fs_list *l);
tare_status fs_remove_tree(const char *path, struct err *e);
/* Write a temporary file next to path, sync it and rename it: after a crash, path is the old or the
 * new file. A target that is not a regular file (/dev/stdout, a pipe) is written directly. A
 * symbolic link is kept, and its target is written. */
tare_status fs_write_atomic(const char *path, const void *data, int64_t n, struct err *e);
tare_status fs_sync_dir(const char *path, struct err *e);
/* Copy one file and sync its data. */
tare_status fs_copy(const char *from, const char *to, struct err *e);
/* Append to f, which was opened for path. */
tare_status fs_put(FILE *f, const char *path, const void *data, int64_t n, struct err *e);
/* Flush, sync and close f. Every failure (a full disk) is reported with path. Always closes f. */
tare_status fs_close_synced(FILE *f, const char *path, struct err *e);
void fs_close_at(FILE **f); /* for files that were only read */

struct fs_map { /* a file mapped for reading */
    const unsigned char *data;
    int64_t size;
};
tare_status fs_map(const char *path, struct fs_map *out, struct err *e);
void fs_unmap(struct fs_map *m);

/* Join "a/b" and "c" to "a/b/c"; if c is absolute, out is c. out has FS_PATH bytes; a longer path
 * is an error. */
enum { FS_PATH = 4096 };
tare_status fs_join(char *out, const char *a, const char *b, struct err *e);
/* Test whether a file name stored in a file stays inside that file's folder: it must be relative
 * and must not contain "..". */
bool fs_is_inside(const char *name);
/* Check that the open file is still the one at path, since data appended to a removed file is lost
 * silently. TARE_E_IO if it is not. */
tare_status fs_check_open(int fd, const char *path, struct err *e);
/* Make NAME-XXXXXX for mkstemp and mkdtemp, in TMPDIR if that is a writable folder, otherwise in
 * /tmp. out has FS_PATH bytes. */
tare_status fs_temporary(char *out, const char *name, struct err *e);
/* Folder of a path ("." for a bare name). */
void fs_dirname(char *out, const char *path);

/* XXH3 of bytes and of files: 64 bits, or 128 bits with the high half first. */
void fs_hash128(const void *data, int64_t n, uint64_t out[2]);
uint64_t fs_hash(const void *data, int64_t n, uint64_t seed);
tare_status fs_hash_file(const char *path, uint64_t *out, struct err *e);

#endif
