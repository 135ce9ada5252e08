/* Files that several cells need and one of them makes: PATH is made by the process that holds flock
 * on PATH.making. */
#include "sweep/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

bool sweep_is_locked(const char *file)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

static void unlock_file(struct sweep_job *job, int i)
{
    char path[FS_PATH + 16];
    if (job->lock[i] < 0) return;
    snprintf(path, sizeof path, "%s.making", job->shared[i]);
    unlink(path); /* a process that opened it before finds PATH, or makes it */
    close(job->lock[i]);
    job->lock[i] = -1;
}

void sweep_unlock_shared(struct sweep_job *job, bool all)
{
    for (int i = 0; i < 2; i++)
        if (job->lock[i] >= 0 && (all || fs_exists(job->shared[i]))) unlock_file(job, i);
}

/* *taken: PATH exists, or this process may make it. */
static tare_status lock_file(struct sweep_job *job, int i, bool *taken, struct err *e)
{
    char path[FS_PATH + 16], folder[FS_PATH];
    snprintf(path, sizeof path, "%s.making", job->shared[i]);
    fs_dirname(folder, path);
    TRY(fs_mkdirs(folder, e));
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        const int why = errno;
        close(fd);
        if (why != EWOULDBLOCK) FAIL(e, TARE_E_IO, "%s: cannot be locked: %s", path, strerror(why));
        *taken = false;
        return TARE_OK;
    }
    job->lock[i] = fd;
    *taken = true;
    return TARE_OK;
}

tare_status sweep_lock_shared(struct sweep_job *job, bool *ready, struct err *e)
{
    *ready = true;
    for (int i = 0; i < 2 && *ready; i++) {
        if (!job->shared[i] || fs_exists(job->shared[i])) continue;
        const tare_status status = lock_file(job, i, ready, e);
        if (status) {
            sweep_unlock_shared(job, true);
            return status;
        }
    }
    sweep_unlock_shared(job, !*ready);
    return TARE_OK;
}
