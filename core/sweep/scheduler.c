/* The scheduler: keeps `concurrent` runs in progress until every cell is finished. */
#include "sweep/sweep.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "observe/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { POLL_NS = 20000000 }; /* a finished run is replaced within this time */

struct scheduler {
    struct sweep *s;
    int64_t first, end; /* range of cells to run */
    int64_t running, elsewhere, done, failed, waiting;
    int64_t finished_here;
    double began, busy;     /* busy: total seconds of finished runs */
    bool stopping, decided; /* decided: start no more cells */
    int64_t asked;          /* number of finished cells at the last call of mode->enough */
    const struct sweep_mode *mode;
};

/* ---------------------------------------------------------------- one run */

static tare_status log_path(const struct sweep_job *job, char *path, struct err *e)
{
    return fs_join(path, job->dir, "log.txt", e);
}

static tare_status spawn_run(struct sweep_job *job, struct err *e)
{
    char path[FS_PATH];
    int64_t n = 0;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    TRY(fs_mkdirs(job->dir, e));
    TRY(log_path(job, path, e));
    while (job->argv[n]) n++;
    const char *last = job->argv[n - 1];
    const bool resumed = !strcmp(last, "--resume"), resume = !run_lock_check(job->dir, true, e);
    if (resume && !resumed) job->argv[n] = "--resume";
    if (!resume && resumed) job->argv[n - 1] = NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_init(&attributes);
    /* the sweep receives Ctrl-C and forwards it once */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int why = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, (char *const *)(uintptr_t)job->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (why) FAIL(e, TARE_E_IO, "%s: the run cannot be started: %s", job->dir, strerror(why));
    job->pid = (int)pid;
    return TARE_OK;
}

/* Returns the last error message in the log of a failed run, or else its last line. */
static tare_status last_error(struct sweep *s, const struct sweep_job *job, int exit_status, const char **out, struct err *e)
{
    char path[FS_PATH], message[1000] = "";
    struct str text = {0};
    TRY(log_path(job, path, e));
    if (!fs_read_all(path, &text, e) && text.data)
        for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"))
            if (!strncmp(line, "tare: ", 6) || strncmp(message, "tare: ", 6)) snprintf(message, sizeof message, "%s", line);
    str_free(&text);
    if (WIFSIGNALED(exit_status)) {
        snprintf(message, sizeof message, "ended by signal %d (%s)", WTERMSIG(exit_status), strsignal(WTERMSIG(exit_status)));
    } else if (!message[0]) {
        snprintf(message, sizeof message, "exit status %d without a message", WEXITSTATUS(exit_status));
    }
    return arena_strdup(&s->arena, message, -1, (char **)(uintptr_t)out, e);
}

/* ---------------------------------------------------------------- cells */

static const char *state_name(enum sweep_state state)
{
    static const char *const NAMES[] = {"pending", "running", "running", "done", "failed"};
    return NAMES[state];
}

static tare_status record_cell(struct scheduler *q, int64_t i, double seconds, double value, struct err *e)
{
    const struct sweep_job *job = &q->s->jobs[i];
    struct sweep_record r = {.dir = job->dir, .attempts = job->attempts, .seconds = seconds, .value = value};
    snprintf(r.status, sizeof r.status, "%s", state_name(job->state));
    if (job->state == SWEEP_FAILED) r.error = job->error;
    return sweep_db_set(q->s->db, q->s->plan.cells[i].name, &r, e);
}

static tare_status metric_of(struct sweep *s, const struct sweep_job *job, double *value, struct err *e)
{
    OWNED(arena_free) struct arena a = {0};
    struct run_data data;
    arena_init(&a, "metrics");
    TRY(run_data_read(job->dir, &a, &data, e));
    return run_data_value(&data, s->plan.metric, value, e);
}

double sweep_time_left(double each, int64_t open, double begun, int64_t concurrent)
{
    return (each * (double)open - begun) / (double)(open < concurrent ? open : concurrent);
}

static void report_cell(const struct scheduler *q, int64_t i, double seconds, double value)
{
    const struct sweep_job *job = &q->s->jobs[i];
    char what[1200], left[60] = "";
    const int64_t open = q->waiting + q->running + q->elsewhere;
    if (job->state == SWEEP_FAILED)
        snprintf(what, sizeof what, "failed: %s", job->error);
    else
        snprintf(what, sizeof what, "%s %.4g", q->s->plan.metric, value);
    if (open && q->finished_here) {
        const double each = q->busy / (double)q->finished_here;
        double begun = 0;
        for (int64_t k = q->first; k < q->end; k++) {
            const struct sweep_job *other = &q->s->jobs[k];
            if (other->state == SWEEP_RUNNING && k != i) begun += fmin(each, clock_seconds() - other->began);
        }
        const double rest = sweep_time_left(each, open, begun, q->s->concurrent);
        if (rest < 90)
            snprintf(left, sizeof left, "; about %.0f s left", ceil(rest));
        else
            snprintf(left, sizeof left, "; about %.0f min left", ceil(rest / 60));
    }
    log_info("%lld of %lld done, %lld to go, %lld failed%s: %s: %s (%.0f s)", (long long)q->done, (long long)(q->end - q->first),
             (long long)open, (long long)q->failed, left, q->s->plan.cells[i].name, what, seconds);
}

static tare_status start_cell(struct scheduler *q, int64_t i, bool *started, struct err *e)
{
    struct sweep_job *job = &q->s->jobs[i];
    TRY(sweep_lock_shared(job, started, e));
    if (!*started) return TARE_OK;
    TRY(spawn_run(job, e));
    job->state = SWEEP_RUNNING;
    job->attempts++;
    job->began = clock_seconds();
    q->running++;
    q->waiting--;
    log_debug("started %s", q->s->plan.cells[i].name);
    return record_cell(q, i, NAN, NAN, e);
}

/* Handles the end of a run started by this scheduler. */
static tare_status run_ended(struct scheduler *q, int64_t i, int exit_status, struct err *e)
{
    struct sweep_job *job = &q->s->jobs[i];
    const double seconds = clock_seconds() - job->began;
    double value = NAN;
    q->running--;
    job->pid = 0;
    sweep_unlock_shared(job, true);
    if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0) {
        job->state = SWEEP_DONE;
        q->done++;
        q->finished_here++;
        q->busy += seconds;
        TRY(metric_of(q->s, job, &value, e));
    } else if (q->stopping || (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 130)) {
        job->state = SWEEP_PENDING; /* interrupted after a checkpoint */
        q->waiting++;
        q->stopping = true;
    } else {
        job->state = SWEEP_FAILED;
        q->failed++;
        TRY(last_error(q->s, job, exit_status, &job->error, e));
    }
    TRY(record_cell(q, i, seconds, value, e));
    if (job->state != SWEEP_PENDING) report_cell(q, i, seconds, value);
    return fault_point(0, "cell", q->done, e);
}

/* Checks a run left by an earlier sweep, which has ended once its lock is free. */
static tare_status check_elsewhere(struct scheduler *q, int64_t i, struct err *e)
{
    struct sweep_job *job = &q->s->jobs[i];
    char lock[FS_PATH], status[16];
    int64_t step;
    double value = NAN;
    TRY(fs_join(lock, job->dir, "lock", e));
    if (sweep_is_locked(lock)) return TARE_OK;
    TRY(run_last_step(job->dir, &step, e));
    TRY(sweep_db_run_status(q->s->db, job->dir, status, e));
    q->elsewhere--;
    if (step < job->steps || strcmp(status, "done")) {
        job->state = SWEEP_PENDING;
        q->waiting++;
        return TARE_OK;
    }
    job->state = SWEEP_DONE;
    q->done++;
    TRY(metric_of(q->s, job, &value, e));
    TRY(record_cell(q, i, NAN, value, e));
    report_cell(q, i, 0, value);
    return TARE_OK;
}

static tare_status collect_ended(struct scheduler *q, struct err *e)
{
    for (int64_t i = q->first; i < q->end; i++) {
        struct sweep_job *job = &q->s->jobs[i];
        int exit_status;
        if (job->state == SWEEP_ELSEWHERE) TRY(check_elsewhere(q, i, e));
        if (job->state != SWEEP_RUNNING) continue;
        sweep_look_metric(q->s, job);
        sweep_unlock_shared(job, false);
        const pid_t got = waitpid((pid_t)job->pid, &exit_status, WNOHANG);
        if (got < 0 && errno != EINTR) FAIL(e, TARE_E_IO, "waiting for %s: %s", job->dir, strerror(errno));
        if (got == (pid_t)job->pid) TRY(run_ended(q, i, exit_status, e));
    }
    return TARE_OK;
}

/* Starts waiting cells while there are free places. */
static tare_status start_waiting(struct scheduler *q, struct err *e)
{
    for (int64_t i = q->first; i < q->end && q->running + q->elsewhere < q->s->concurrent && q->waiting; i++) {
        bool started;
        if (q->s->jobs[i].state == SWEEP_PENDING) TRY(start_cell(q, i, &started, e));
    }
    return TARE_OK;
}

static void terminate_runs(const struct scheduler *q)
{
    for (int64_t i = q->first; i < q->end; i++)
        if (q->s->jobs[i].pid) kill((pid_t)q->s->jobs[i].pid, SIGTERM);
}

static void stop_all(struct scheduler *q)
{
    q->stopping = true;
    log_warn("stopping: %lld runs save a checkpoint", (long long)q->running);
    terminate_runs(q);
}

/* Waits for all runs even after an error: a run left alone would keep writing into its folder. */
static void wait_all(struct scheduler *q)
{
    for (int64_t i = q->first; i < q->end; i++) {
        struct sweep_job *job = &q->s->jobs[i];
        if (!job->pid) continue;
        while (waitpid((pid_t)job->pid, NULL, 0) < 0 && errno == EINTR) continue;
        sweep_unlock_shared(job, true);
    }
}

static void stop_without_memory(void *ctx)
{
    terminate_runs(ctx);
    wait_all(ctx);
}

static void ask_enough(struct scheduler *q)
{
    if (!q->mode->enough || q->decided || q->asked == q->done) return;
    q->asked = q->done;
    q->decided = q->mode->enough(q->mode->ctx, q->s);
    if (q->decided) log_info("every difference is decided; %lld cells are not run", (long long)q->waiting);
}

static tare_status run_cells(struct scheduler *q, struct err *e)
{
    while (q->running || (!q->stopping && !q->decided && (q->waiting || q->elsewhere))) {
        TRY(collect_ended(q, e));
        ask_enough(q);
        if (!q->stopping && !q->decided) TRY(start_waiting(q, e));
        if (*signals_flag() && !q->stopping) stop_all(q);
        if (q->running || q->waiting || q->elsewhere) nanosleep(&(struct timespec){0, POLL_NS}, NULL);
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- the sweep */

static void count_cells(struct scheduler *q)
{
    for (int64_t i = q->first; i < q->end; i++) {
        const enum sweep_state state = q->s->jobs[i].state;
        q->waiting += state == SWEEP_PENDING;
        q->elsewhere += state == SWEEP_ELSEWHERE;
        q->done += state == SWEEP_DONE;
        q->failed += state == SWEEP_FAILED;
    }
}

static tare_status report_end(struct scheduler *q, struct err *e)
{
    const double seconds = clock_seconds() - q->began;
    if (q->finished_here)
        log_info("%lld runs in %.0f s; %lld places were busy %.0f %% of the time", (long long)q->finished_here, seconds,
                 (long long)q->s->concurrent, 100 * q->busy / (seconds * (double)q->s->concurrent));
    if (q->stopping)
        FAIL(e, TARE_E_CANCELLED, "interrupted: %lld of %lld cells are done; the same command continues", (long long)q->done,
             (long long)(q->end - q->first));
    if (!q->failed) return TARE_OK;
    for (int64_t i = q->first; i < q->end; i++)
        if (q->s->jobs[i].state == SWEEP_FAILED)
            log_warn("failed: %s: %s", q->s->plan.cells[i].name, q->s->jobs[i].error ? q->s->jobs[i].error : "see its log.txt");
    FAIL(e, TARE_E_STATE, "%lld of %lld cells failed; their logs are %s/CELL/log.txt, --retry runs them again",
         (long long)q->failed, (long long)(q->end - q->first), q->s->plan.dir);
}

tare_status sweep_run(struct sweep *s, const struct sweep_mode *mode, struct err *e)
{
    struct scheduler q = {.s = s, .mode = mode, .end = s->plan.n_cells, .began = clock_seconds()};
    int lock = -1;
    if (mode->cell >= 0) {
        if (mode->cell >= s->plan.n_cells)
            FAIL(e, TARE_E_RANGE, "--cell %lld: the sweep has cells 0 to %lld", (long long)mode->cell,
                 (long long)s->plan.n_cells - 1);
        q.first = mode->cell;
        q.end = mode->cell + 1;
    }
    const bool is_new = !run_data_is_sweep(s->plan.dir); /* a refused sweep leaves no folder */
    if (is_new) TRY(sweep_check_cells(s, q.first, q.end, mode->check, e));
    if (mode->cell < 0) TRY(run_lock_take(s->plan.dir, &lock, e));
    signals_catch();
    tare_status status = sweep_begin(s, e);
    if (!status) status = sweep_look(s, mode->retry || mode->cell >= 0, e);
    if (!status && mode->cell < 0) status = sweep_warn_changed(s, e);
    if (!status && !is_new) status = sweep_check_cells(s, q.first, q.end, mode->check, e);
    if (!status) {
        count_cells(&q);
        log_info("%s: %lld cells, %lld done, %lld to run%s; %lld at a time, %lld thread%s each", s->plan.dir,
                 (long long)(q.end - q.first), (long long)q.done, (long long)(q.waiting + q.elsewhere),
                 q.failed ? ", some failed before (--retry)" : "", (long long)s->concurrent, (long long)s->threads,
                 s->threads == 1 ? "" : "s");
        json_stop_first(stop_without_memory, &q);
        status = run_cells(&q, e);
        if (status && q.running) { /* an error of the sweep itself: stop the runs too */
            struct err ignored;
            stop_all(&q);
            run_cells(&q, &ignored);
            wait_all(&q); /* runs whose end could not be recorded */
        }
        json_stop_first(NULL, NULL);
    }
    if (!status) status = report_end(&q, e);
    run_lock_release(lock);
    return status;
}
