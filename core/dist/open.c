/* Opens the communicator of this process. */
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/signals.h"
#include "dist/comm_mpi.h"
#include "dist/launch.h"
#include "dist/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 10 }; /* seconds */

static struct comm job; /* size 0: not started */
static bool launched;   /* this process has run the job's mpirun */
static int launched_status;
static bool same_on_all; /* the error that ends this process is the same on every rank, before MPI is open */

static bool number_of(const char *name, int *out)
{
    const char *text = getenv(name);
    if (!text || !*text) return false;
    *out = atoi(text);
    return true;
}

int ranks_launched(int *rank)
{
    /* mpirun of Open MPI; of MPICH; srun, which also names the step of a process (a batch script
     * alone has none). */
    const char *const names[][3] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                    {"PMI_SIZE", "PMI_RANK", "PMI_SIZE"},
                                    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_ID"}};
    int ignored, size = 0;
    if (!rank) rank = &ignored;
    *rank = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i][2]) && number_of(names[i][0], &size) && number_of(names[i][1], rank)) return size;
    return 0;
}

int ranks_refused(int exit_code)
{
    int rank;
    ranks_launched(&rank);
    return rank ? 0 : exit_code;
}

/* Checks before ranks can communicate: every rank meets the same error, and one reports it. */
static tare_status check_number(const struct ranks_options *o, int size, struct err *e)
{
    if (size && o->ranks && o->ranks != size)
        FAIL(e, TARE_E_CONFIG,
             "%s: dist.ranks = %lld, but the launcher (mpirun, srun) started %d; remove dist.ranks, or set both to the same number",
             o->where, (long long)o->ranks, size);
    if (o->library == COMMUNICATOR_NCCL && !o->device_memory)
        FAIL(e, TARE_E_CONFIG, "dist.communicator = nccl: needs GPUs; set run.device = cuda, or dist.communicator = auto");
    return TARE_OK;
}

/* Checks for a launcher with which MPI itself would fail with a long message. */
static tare_status check_launcher(int size, struct err *e)
{
    if (size > 1 && getenv("SLURM_STEP_ID") && !getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMI_SIZE") && !getenv("PMIX_RANK"))
        FAIL(e, TARE_E_CONFIG, "srun started %d ranks without PMIx, which MPI joins them through; start them with srun --mpi=pmix",
             size);
    return TARE_OK;
}

static tare_status join_job(const struct ranks_options *o, int rank, struct err *e)
{
    tare_status status = fault_point(rank, "start", 0, e);
    if (!status) status = comm_mpi(o->timeout_s, &job, e);
    if (status) {
        job = (struct comm){0};
        return status;
    }
    if (!job.rank) launch_joined();
    if (rank != job.rank) log_debug("the launcher reports rank %d, MPI rank %d", rank, job.rank);
    if (job.rank) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "rank %d: ", job.rank);
        log_set_prefix(prefix);
        if (log_level() > LOG_DEBUG) log_set_level(LOG_ERROR);
        if (!freopen("/dev/null", "w", stdout)) FAIL(e, TARE_E_IO, "/dev/null cannot be opened");
    }
    return TARE_OK;
}

tare_status ranks_start(const struct ranks_options *o, tare_status status, bool *done, struct err *e)
{
    int rank;
    const int size = ranks_launched(&rank);
    *done = false;
    same_on_all = check_launcher(size, e) != TARE_OK;
    if (same_on_all) return e->code;
    if (!status) status = check_number(o, size, e);
    if (size > 1) {
        struct err why = {0};
        const tare_status joined = join_job(o, rank, &why);
        if (joined && !status) *e = why;
        if (joined) return status ? status : joined;
        status = comm_agree(&job, status, e);
        return status;
    }
    if (status || o->ranks <= 1) return status;
    TRY(comm_mpi_about(&(char){0}, 1, e));
    TRY(launch_ranks(o->ranks, &launched_status, e));
    *done = launched = true;
    return TARE_OK;
}

tare_status ranks_start_of(const struct config *c, tare_status status, bool *done, struct err *e)
{
    struct ranks_options o = {.where = "", .timeout_s = 60, .library = COMMUNICATOR_AUTO};
    if (c)
        o = (struct ranks_options){.ranks = c->dist.ranks,
                                   .where = config_where(c, "dist", "ranks"),
                                   .timeout_s = c->dist.timeout_s,
                                   .library = c->dist.communicator,
                                   .device_memory = c->run.device == RUN_CUDA};
    return ranks_start(&o, status, done, e);
}

/* Reports that MPI did not open on this rank. If rank 0 has met the same error, it reports it and
 * ends, and mpirun ends this process with SIGTERM. Otherwise rank 0 waits silently in MPI for this
 * rank. So this rank reports if it has not been ended after a while. */
static void report_late(int rank, const struct err *e)
{
    const double until = clock_seconds() + PATIENCE;
    const struct timespec nap = {0, 50000000};
    struct err mine = *e;
    char host[64] = "?";
    while (clock_seconds() < until && !signals_asked()) nanosleep(&nap, NULL);
    if (signals_asked()) return;
    gethostname(host, sizeof host - 1);
    if (strncmp(mine.message, "rank ", 5)) err_prefix(&mine, "rank %d (host %s)", rank, host);
    log_error(&mine);
    launch_reported();
}

int ranks_end(tare_status status, const struct err *e)
{
    int rank;
    ranks_launched(&rank);
    if (launched) return launched_status;
    if (job.size && status) job.abort(&job, e); /* does not return */
    if (job.size) {
        job.free(&job);
        job = (struct comm){0};
    } else if (status && rank == 0) {
        log_error(e);
        launch_reported();
    } else if (status && !same_on_all) {
        report_late(rank, e);
    }
    return same_on_all ? ranks_refused(err_exit_code(status)) : err_exit_code(status);
}

static void keep_job(struct comm *c)
{
    (void)c; /* closed by ranks_end */
}

tare_status comm_open(int64_t ranks, struct comm *out, struct err *e)
{
    if (job.size) {
        *out = job;
        out->free = keep_job;
        return TARE_OK;
    }
    if (ranks > 1)
        FAIL(e, TARE_E_STATE, "dist.ranks = %lld, but this command runs in one process; set dist.ranks = 1", (long long)ranks);
    return comm_self(out, e);
}
