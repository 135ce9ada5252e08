#include "lab/replay/replay.h"

#include "base/log.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char PROGRAM[] = "/proc/self/exe";

/* Writes the program's name, the options for this process's log level and the verb. */
static int add_program(const char **argv, bool quiet)
{
    int n = 0;
    argv[n++] = "tare";
    if (log_level() == LOG_DEBUG) argv[n++] = "-v";
    if (log_level() >= LOG_WARN || (quiet && log_level() != LOG_DEBUG)) argv[n++] = "-q";
    argv[n++] = "train";
    return n;
}

/* Starts the program without the table that it prints after its last step. Returns 0 or an errno.
 */
static int spawn_train(const char **argv, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int why = posix_spawn_file_actions_init(&actions);
    if (why) return why;
    why = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!why) why = posix_spawn(pid, PROGRAM, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return why;
}

/* Waits for the process. Ctrl-C reaches it directly; a signal to this process alone is forwarded.
 */
static tare_status wait_for(pid_t pid, int *exit_status, struct err *e)
{
    bool sent = false;
    while (waitpid(pid, exit_status, 0) < 0) {
        if (errno != EINTR) FAIL(e, TARE_E_IO, "cannot wait for tare train: %s", strerror(errno));
        if (*signals_flag() && !sent) kill(pid, SIGUSR1);
        sent = *signals_flag();
    }
    return TARE_OK;
}

/* Writes the folders that the run's paths count from now: it may have been moved with its files, and
 * the copy does not lie to them as the run does. */
static tare_status add_folders(const char *run, char folders[2][FS_PATH + 32], const char **argv, int *n, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    if (!run) return TARE_OK;
    TRY(config_load(&c, run, NULL, 0, e));
    if (!*c.run.paths_from) return TARE_OK;
    snprintf(folders[0], sizeof folders[0], "run.paths_from=%s", c.run.paths_from);
    argv[(*n)++] = folders[0];
    snprintf(folders[1], sizeof folders[1], "run.plugins=%s", c.run.plugins);
    if (*c.run.plugins) argv[(*n)++] = folders[1];
    return TARE_OK;
}

tare_status replay_train(const char *dir, int64_t step, const struct replay_options *o, struct err *e)
{
    const char *argv[230];
    char until[32], folders[2][FS_PATH + 32];
    int exit_status;
    pid_t pid;
    snprintf(until, sizeof until, "%lld", (long long)step);
    const char *const rest[] = {
        dir, "--resume", "--until", until, "log.database=false", "log.tensorboard=false", "log.progress=none", "model.warm_start="};
    const int n_rest = o->checks ? 8 : 6;
    int n = add_program(argv, true); /* quiet: its messages name a temporary folder */
    for (int i = 0; i < n_rest; i++) argv[n++] = rest[i];
    TRY(add_folders(o->run, folders, argv, &n, e));
    if (o->n_keys > 200) FAIL(e, TARE_E_INVALID, "too many keys: at most 200");
    for (int64_t i = 0; i < o->n_keys; i++) argv[n++] = o->keys[i];
    argv[n] = NULL;
    const int why = spawn_train(argv, &pid);
    if (why) FAIL(e, TARE_E_IO, "tare train cannot be started: %s", strerror(why));
    TRY(wait_for(pid, &exit_status, e));
    if (WIFEXITED(exit_status) && !WEXITSTATUS(exit_status)) return TARE_OK;
    if (*signals_flag() || (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 130))
        FAIL(e, TARE_E_CANCELLED, "interrupted while recomputing the steps up to %lld", (long long)step);
    FAIL(e, TARE_E_STATE, "cannot recompute the steps up to %lld: tare train %s (its message is above)", (long long)step,
         WIFSIGNALED(exit_status) ? strsignal(WTERMSIG(exit_status)) : "failed");
}

tare_status replay_continue(const char *dir, struct err *e)
{
    const char *argv[8];
    char word[STR_SHELL];
    int n = add_program(argv, false);
    argv[n++] = dir;
    argv[n++] = "--resume";
    argv[n] = NULL;
    if (setenv("TARE_FORKED", dir, 1)) FAIL(e, TARE_E_NOMEM, "%s: no memory to continue", dir);
    execv(PROGRAM, (char *const *)(uintptr_t)argv);
    FAIL(e, TARE_E_IO, "tare train cannot be started: %s; continue with: tare train %s --resume", strerror(errno),
         str_shell(word, dir));
}
