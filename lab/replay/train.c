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

/* The words in front of the verb: messages as this process shows them. */
static int begin(const char **argv, bool quiet)
{
    int n = 0;
    argv[n++] = "tare";
    if (log_level() == LOG_DEBUG) argv[n++] = "-v";
    if (log_level() >= LOG_WARN || (quiet && log_level() != LOG_DEBUG)) argv[n++] = "-q";
    argv[n++] = "train";
    return n;
}

/* Without the table that it prints after its last step: these steps are not the user's run. 0, or why not. */
static int spawn(const char **argv, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int why = posix_spawn_file_actions_init(&actions);
    if (why) return why;
    why = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!why) why = posix_spawn(pid, PROGRAM, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return why;
}

/* A Ctrl-C reaches the process by itself; a signal to this one alone is handed on. */
static tare_status wait_for(pid_t pid, int *exit_status, struct err *e)
{
    bool told = false;
    while (waitpid(pid, exit_status, 0) < 0) {
        if (errno != EINTR) FAIL(e, TARE_E_IO, "waiting for tare train: %s", strerror(errno));
        if (*signals_flag() && !told) kill(pid, SIGUSR1);
        told = *signals_flag();
    }
    return TARE_OK;
}

tare_status replay_train(const char *dir, int64_t step, const struct replay_options *o, struct err *e)
{
    const char *argv[230];
    char until[32];
    int exit_status;
    pid_t pid;
    snprintf(until, sizeof until, "%lld", (long long)step);
    const char *const rest[] = {
        dir, "--resume", "--until", until, "log.database=false", "log.tensorboard=false", "log.progress=none", "model.warm_start="};
    const int n_rest = o->checks ? 8 : 6;
    int n = begin(argv, true); /* it would name a folder and keys that the user has not */
    for (int i = 0; i < n_rest; i++) argv[n++] = rest[i];
    if (o->n_keys > 200) FAIL(e, TARE_E_INVALID, "more than 200 keys");
    for (int64_t i = 0; i < o->n_keys; i++) argv[n++] = o->keys[i];
    argv[n] = NULL;
    const int why = spawn(argv, &pid);
    if (why) FAIL(e, TARE_E_IO, "tare train cannot be started: %s", strerror(why));
    TRY(wait_for(pid, &exit_status, e));
    if (WIFEXITED(exit_status) && !WEXITSTATUS(exit_status)) return TARE_OK;
    if (*signals_flag() || (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 130))
        FAIL(e, TARE_E_CANCELLED, "interrupted while the steps up to %lld were made again", (long long)step);
    FAIL(e, TARE_E_STATE, "the steps up to %lld could not be made again: tare train %s (its message is above)", (long long)step,
         WIFSIGNALED(exit_status) ? strsignal(WTERMSIG(exit_status)) : "failed");
}

tare_status replay_go_on(const char *dir, struct err *e)
{
    const char *argv[8];
    int n = begin(argv, false);
    argv[n++] = dir;
    argv[n++] = "--resume";
    argv[n] = NULL;
    if (setenv("TARE_FORKED", dir, 1)) FAIL(e, TARE_E_NOMEM, "%s: no memory to go on", dir);
    execv(PROGRAM, (char *const *)(uintptr_t)argv);
    FAIL(e, TARE_E_IO, "tare train cannot be started: %s; continue with: tare train %s --resume", strerror(errno), dir);
}
