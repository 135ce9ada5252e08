#include "lab/replay/part.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 1000 }; /* a failed try means that another process began or ended a fork */

static const char HALF[] = PART_MARK ".tmp"; /* a crash may leave this while the mark is written */

tare_status part_no_file(void *ctx, const char *folder, const char *name, struct err *e)
{
    (void)ctx;
    FAIL(e, TARE_E_STATE, "%s: already has files (%s); move them, or name another folder", folder, name);
}

static tare_status check_half_mark(void *ctx, const char *folder, const char *name, struct err *e)
{
    return strcmp(name, HALF) ? part_no_file(ctx, folder, name, e) : TARE_OK;
}

tare_status part_check(const char *folder, struct err *e)
{
    char path[FS_PATH];
    struct err why = {0};
    bool ours;
    TRY(fs_join(path, folder, PART_MARK, e));
    TRY(fs_there(path, &ours, e));
    if (ours || !fs_each(folder, check_half_mark, NULL, &why)) return TARE_OK;
    TRY(fs_there(path, &ours, e)); /* another process may have begun or ended a fork meanwhile */
    if (!ours && fs_exists(folder)) FAIL(e, why.code, "%s", why.message);
    return TARE_OK;
}

tare_status part_begin(const char *folder, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_remove_tree(folder, e));
    TRY(fs_mkdirs(folder, e));
    TRY(fs_join(path, folder, PART_MARK, e));
    return fs_write_atomic(path, "", 0, e);
}

static tare_status remove_other(void *ctx, const char *folder, const char *name, struct err *e)
{
    char path[FS_PATH];
    (void)ctx;
    if (!strcmp(name, PART_MARK)) return TARE_OK;
    TRY(fs_join(path, folder, name, e));
    return fs_remove_tree(path, e);
}

/* Tries once. Without lock and error, another process removed or renamed the folder meanwhile. */
static tare_status try_lock(struct part *p, const char *mark, struct err *e)
{
    if (mkdir(p->path, 0777) && errno != EEXIST) FAIL(e, TARE_E_IO, "%s: %s", p->path, strerror(errno));
    TRY(part_check(p->path, e));
    p->lock = open(mark, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (p->lock < 0 && errno == ENOENT) return TARE_OK;
    if (p->lock < 0) FAIL(e, TARE_E_IO, "%s: %s", mark, strerror(errno));
    const int why = flock(p->lock, LOCK_EX | LOCK_NB) ? errno : 0;
    if (!why && !fs_check_open(p->lock, mark, NULL)) return TARE_OK;
    close(p->lock);
    p->lock = -1;
    if (why == EWOULDBLOCK)
        FAIL(e, TARE_E_STATE, "%s: another process is making this fork; wait for it, or name another folder with --run-dir",
             p->path);
    if (why) FAIL(e, TARE_E_IO, "%s: cannot be locked: %s", mark, strerror(why));
    return TARE_OK;
}

tare_status part_take(struct part *p, struct err *e)
{
    char mark[FS_PATH], parent[FS_PATH];
    p->lock = -1;
    TRY(fs_join(mark, p->path, PART_MARK, e));
    fs_dirname(parent, p->path);
    TRY(fs_mkdirs(parent, e));
    TRY(fault_point(0, "locking", 1, e));
    for (int i = 0; i < TRIES && p->lock < 0; i++) TRY(try_lock(p, mark, e));
    if (p->lock < 0) FAIL(e, TARE_E_STATE, "%s: other processes keep creating and removing it; try again", p->path);
    TRY(fs_sync_dir(parent, e));
    TRY(fs_sync_dir(p->path, e)); /* the mark must be on disk before other files */
    return fs_each(p->path, remove_other, NULL, e);
}

static void unlock_part(struct part *p)
{
    close(p->lock);
    p->lock = -1;
}

tare_status part_named(struct part *p, const char *to, struct err *e)
{
    char mark[FS_PATH];
    TRY(fs_join(mark, to, PART_MARK, e));
    TRY(fs_remove_tree(mark, e));
    unlock_part(p);
    return fs_sync_dir(to, e);
}

/* Removes the mark last. If another process creates a new mark after that, the folder is its own
 * and rmdir fails. */
void part_let_go(struct part *p)
{
    char mark[FS_PATH];
    if (p->lock < 0) return;
    if (!fs_join(mark, p->path, PART_MARK, NULL) && !fs_check_open(p->lock, mark, NULL) &&
        !fs_each(p->path, remove_other, NULL, NULL) && !unlink(mark))
        rmdir(p->path);
    unlock_part(p);
}
