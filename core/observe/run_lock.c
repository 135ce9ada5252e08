#include "observe/run_lock.h"

#include "base/fault.h"
#include "base/fs.h"
#include "observe/sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Returns true if a run was ever opened in the folder. (The chain's link alone, written before the
 * manifest, holds nothing that could be lost.) */
static bool holds_run(const char *run_dir)
{
    static const char *const MARKS[] = {"manifest.json", "metrics.jsonl", "checkpoints"};
    char path[FS_PATH];
    for (int i = 0; i < 3; i++)
        if (!fs_join(path, run_dir, MARKS[i], NULL) && fs_exists(path)) return true;
    return false;
}

/* The folder is created with the first checkpoint. */
static bool has_checkpoint(const char *run_dir)
{
    char path[FS_PATH];
    return fs_join(path, run_dir, "checkpoints", NULL) || fs_exists(path);
}

/* Returns whether the folder has files and the working folder is this one or below it: `run.dir = ..`. */
static bool holds_working_folder(const char *run_dir)
{
    char full[PATH_MAX], here[PATH_MAX];
    struct fs_list names = {0};
    if (!realpath(run_dir, full) || !realpath(".", here) || fs_list(run_dir, NULL, &names, &(struct err){0})) return false;
    const bool empty = names.n <= 2; /* . and .. */
    const size_t n = strlen(full);
    fs_list_free(&names);
    return !empty && !strncmp(full, here, n) && (here[n] == 0 || here[n] == '/' || full[n - 1] == '/');
}

tare_status run_lock_check_place(const char *run_dir, struct err *e)
{
    if (holds_run(run_dir) || !holds_working_folder(run_dir)) return TARE_OK;
    FAIL(e, TARE_E_CONFIG,
         "run.dir = %s: has the working folder and other files, which the run's would lie among; name another folder", run_dir);
}

tare_status run_lock_check(const char *run_dir, bool resume, struct err *e)
{
    if (fs_exists(run_dir) && !fs_is_dir(run_dir)) FAIL(e, TARE_E_INVALID, "%s: must be a folder; choose another run.dir", run_dir);
    const bool holds = holds_run(run_dir);
    if (resume && !holds) FAIL(e, TARE_E_NOT_FOUND, "%s: no run to resume; omit --resume, or check run.dir", run_dir);
    if (resume || !holds) return TARE_OK;
    if (has_checkpoint(run_dir))
        FAIL(e, TARE_E_STATE, "%s: holds a run already; --resume continues it, run.dir=FOLDER starts another, or remove the folder",
             run_dir);
    FAIL(
        e, TARE_E_STATE,
        "%s: holds a run already, without a checkpoint; remove the folder to start over, or --resume starts at the first step again (with other keys --resume --allow-change); run.dir=FOLDER starts another",
        run_dir);
}

tare_status run_lock_text(struct str *out, struct err *e)
{
    return str_addf(out, e, "%ld\n", (long)getpid());
}

/* Requires regular files at the fixed names: opening a pipe would block, and a device has no
 * end. */
static tare_status check_regular(const char *run_dir, struct err *e)
{
    static const char *const FILES[] = {"lock", "config.ini", "manifest.json", "metrics.jsonl", "chain.jsonl", "ended"};
    char path[FS_PATH];
    struct stat s;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        TRY(fs_join(path, run_dir, FILES[i], e));
        if (stat(path, &s) && !lstat(path, &s))
            FAIL(e, TARE_E_IO, "%s: is a dangling link; put the file back, or move the link away", path);
        if (!stat(path, &s) && !S_ISREG(s.st_mode)) FAIL(e, TARE_E_IO, "%s: is not a regular file; move it away", path);
    }
    return TARE_OK;
}

/* Reports the process that holds the lock. The file may still name the previous process, or none,
 * until the holder has signed it. */
static tare_status refuse_lock(int fd, const char *run_dir, struct err *e)
{
    char text[32] = "", who[48] = "";
    if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
    const long pid = atol(text);
    if (pid == (long)getpid())
        FAIL(e, TARE_E_STATE,
             "%s: this process writes this run already; close it there, or choose another folder (run.dir, or sft.out)", run_dir);
    if (pid > 0 && (!kill((pid_t)pid, 0) || errno != ESRCH)) snprintf(who, sizeof who, " (%ld)", pid);
    FAIL(e, TARE_E_STATE, "%s: another process%s writes this run; wait for it, or choose another folder (run.dir, or sft.out)",
         run_dir, who);
}

/* Returns 0 once this process has the lock exclusively. A process that checks the lock
 * (run_lock_is_held) shares it briefly, so this waits up to two seconds. If a process holds it
 * exclusively, returns EWOULDBLOCK at once. */
static int lock_alone(int fd)
{
    struct err ignored;
    for (int i = 0; i < 200; i++) {
        if (!flock(fd, LOCK_EX | LOCK_NB)) return 0;
        if (errno != EWOULDBLOCK || flock(fd, LOCK_SH | LOCK_NB)) return errno;
        flock(fd, LOCK_UN);
        if (fault_point(0, "locking", 2, &ignored)) return EIO;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return EWOULDBLOCK;
}

/* *fd = -1 without an error if the former holder removed the file with its folder. */
static tare_status hold_once(const char *run_dir, int *fd, struct err *e)
{
    char path[FS_PATH];
    *fd = -1;
    TRY(fs_mkdirs(run_dir, e));
    TRY(check_regular(run_dir, e));
    TRY(fs_join(path, run_dir, "lock", e));
    const int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (f < 0) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    const int why = lock_alone(f);
    tare_status status = TARE_OK;
    if (why == EWOULDBLOCK)
        status = refuse_lock(f, run_dir, e);
    else if (why)
        status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: cannot be locked: %s", path, strerror(why));
    else if (!fs_check_open(f, path, NULL))
        *fd = f;
    if (*fd < 0) close(f);
    return status;
}

tare_status run_lock_hold(const char *run_dir, int *fd, struct err *e)
{
    TRY(fault_point(0, "locking", 0, e));
    for (int i = 0; i < 100; i++) {
        TRY(hold_once(run_dir, fd, e));
        if (*fd >= 0) return TARE_OK;
    }
    FAIL(e, TARE_E_IO, "%s: other processes keep removing its lock; choose another folder", run_dir);
}

tare_status run_lock_sign(int fd, const char *run_dir, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    char path[FS_PATH];
    TRY(fs_join(path, run_dir, "lock", e));
    TRY(run_lock_text(&text, e));
    if ((ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET) < 0)) FAIL(e, TARE_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    TRY(events_append_all(fd, path, text.data, text.size, e));
    if (fsync(fd) && errno != EINVAL) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", path, strerror(errno));
    return TARE_OK;
}

tare_status run_lock_take(const char *run_dir, int *fd, struct err *e)
{
    TRY(run_lock_hold(run_dir, fd, e));
    const tare_status status = run_lock_sign(*fd, run_dir, e);
    if (!status) return TARE_OK;
    run_lock_release(*fd);
    *fd = -1;
    return status;
}

void run_lock_release(int fd)
{
    if (fd < 0) return;
    flock(fd, LOCK_UN); /* a forked child may hold the same open file */
    close(fd);
}

bool run_lock_is_held(const char *run_dir)
{
    char path[FS_PATH];
    if (fs_join(path, run_dir, "lock", NULL)) return false;
    /* O_NONBLOCK because opening a named pipe would block */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    /* shared, so that several processes may check at once */
    const bool held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return held;
}
