#include "lab/replay/part.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 1000 }; /* each one that fails is another process's beginning or end */

static const char HALF[] = PART_MARK ".tmp"; /* what a crash may leave of a mark */

tare_status part_no_file(void *ctx, const char *folder, const char *name, struct err *e)
{
    (void)ctx;
    FAIL(e, TARE_E_STATE, "%s: holds files already (%s); move them, or name another folder", folder, name);
}

static tare_status take_no_other(void *ctx, const char *folder, const char *name, struct err *e)
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
    if (ours || !fs_each(folder, take_no_other, NULL, &why)) return TARE_OK;
    TRY(fs_there(path, &ours, e)); /* another process may have begun, or ended, in between */
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

/* One try. Not held, and no error: another process removed or renamed the folder meanwhile. */
static tare_status try_once(struct part *p, const char *mark, struct err *e)
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
        FAIL(e, TARE_E_STATE, "%s: another process makes this fork; wait for it, or name another folder with --run-dir", p->path);
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
    for (int i = 0; i < TRIES && p->lock < 0; i++) TRY(try_once(p, mark, e));
    if (p->lock < 0) FAIL(e, TARE_E_STATE, "%s: is made and removed again by other processes; try again", p->path);
    TRY(fs_sync_dir(parent, e));
    TRY(fs_sync_dir(p->path, e)); /* before anything else is in it: without the mark it would be a stranger's */
    return fs_each(p->path, remove_other, NULL, e);
}

static void unlock(struct part *p)
{
    close(p->lock);
    p->lock = -1;
}

tare_status part_named(struct part *p, const char *to, struct err *e)
{
    char mark[FS_PATH];
    TRY(fs_join(mark, to, PART_MARK, e));
    TRY(fs_remove_tree(mark, e));
    unlock(p);
    return fs_sync_dir(to, e);
}

/* The mark last but for the folder: whoever makes a new one there from then on has the folder, and it stays. */
void part_let_go(struct part *p)
{
    char mark[FS_PATH];
    if (p->lock < 0) return;
    if (!fs_join(mark, p->path, PART_MARK, NULL) && !fs_check_open(p->lock, mark, NULL) &&
        !fs_each(p->path, remove_other, NULL, NULL) && !unlink(mark))
        rmdir(p->path);
    unlock(p);
}
