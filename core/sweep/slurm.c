/* A Slurm array with one task for each unfinished cell. */
#include "sweep/sweep.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static tare_status shell_word(struct str *out, const char *text, struct err *e)
{
    TRY(str_add(out, " '", -1, e));
    for (; *text; text++) TRY(*text == '\'' ? str_add(out, "'\\''", -1, e) : str_add(out, text, 1, e));
    return str_add(out, "'", 1, e);
}

/* Appends the indices of waiting cells as "0-3,7,9-12". */
static tare_status add_indices(const struct sweep *s, struct str *out, struct err *e)
{
    const char *comma = "";
    for (int64_t i = 0; i < s->plan.n_cells; i++) {
        int64_t end = i;
        if (s->jobs[i].state != SWEEP_PENDING) continue;
        while (end + 1 < s->plan.n_cells && s->jobs[end + 1].state == SWEEP_PENDING) end++;
        TRY(str_addf(out, e, "%s%lld", comma, (long long)i));
        if (end > i) TRY(str_addf(out, e, "-%lld", (long long)end));
        comma = ",";
        i = end;
    }
    return TARE_OK;
}

tare_status sweep_slurm_script(const struct sweep *s, struct str *out, struct err *e)
{
    char here[FS_PATH], self[FS_PATH];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0 || !getcwd(here, sizeof here)) FAIL(e, TARE_E_IO, "cannot find the path of this program: %s", strerror(errno));
    self[n] = 0;
    TRY(str_addf(out, e, "#!/bin/bash\n#SBATCH --job-name=%s\n#SBATCH --array=", s->plan.name));
    TRY(add_indices(s, out, e));
    TRY(str_addf(out, e, "%%%lld\n#SBATCH --cpus-per-task=%lld\n#SBATCH --output=%s/slurm-%%a.log\n", (long long)s->concurrent,
                 (long long)s->threads, s->plan.dir));
    TRY(str_add(out,
                "# a task that runs out of time saves a checkpoint; submit again and it continues\n#SBATCH --signal=B:TERM@120\n",
                -1, e));
    if (s->slurm[0]) TRY(str_addf(out, e, "#SBATCH %s\n", s->slurm));
    TRY(str_add(out, "cd", -1, e));
    TRY(shell_word(out, here, e));
    TRY(str_add(out, " || exit 1\nexec", -1, e));
    TRY(shell_word(out, self, e));
    TRY(str_add(out, " sweep", -1, e));
    TRY(shell_word(out, s->file, e));
    for (int64_t i = 0; i < s->n_overrides; i++) TRY(shell_word(out, s->overrides[i], e));
    return str_add(out, " --cell \"$SLURM_ARRAY_TASK_ID\"\n", -1, e);
}

tare_status sweep_slurm_submit(struct sweep *s, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    pid_t pid;
    int exit_status;
    int64_t waiting = 0;
    for (int64_t i = 0; i < s->plan.n_cells; i++) waiting += s->jobs[i].state == SWEEP_PENDING;
    if (!waiting) FAIL(e, TARE_E_STATE, "%s: no cell is left to submit", s->plan.dir);
    TRY(fs_join(path, s->plan.dir, "sweep.sbatch", e));
    TRY(sweep_slurm_script(s, &text, e));
    TRY(fs_write_atomic(path, text.data, text.size, e));
    const char *argv[] = {"sbatch", path, NULL};
    const int why = posix_spawnp(&pid, "sbatch", NULL, NULL, (char *const *)(uintptr_t)argv, environ);
    if (why)
        FAIL(e, TARE_E_NOT_FOUND, "sbatch cannot be started (%s); the script is %s, submit it on a Slurm machine", strerror(why),
             path);
    while (waitpid(pid, &exit_status, 0) < 0)
        if (errno != EINTR) FAIL(e, TARE_E_IO, "waiting for sbatch: %s", strerror(errno));
    if (!WIFEXITED(exit_status) || WEXITSTATUS(exit_status)) FAIL(e, TARE_E_STATE, "sbatch refused %s; its message is above", path);
    return TARE_OK;
}
