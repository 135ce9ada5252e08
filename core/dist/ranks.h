/* Lets a process become a rank of a job, and ends the job. For verbs that run on several ranks:
 *
 *   config_load(...)                      status
 *   ranks_start_of(&config, status, &e)   processes join; an error of one is an error of all
 *   ...comm_open...                       work
 *   return ranks_end(status, &e);         prints the error once, ends all ranks, returns the status
 *
 * Under mpirun or srun the ranks are those that the launcher started. Without a launcher and with
 * dist.ranks > 1 this process starts mpirun with its own arguments, passes signals on (SIGINT and
 * SIGTERM reach the ranks as SIGUSR1), waits, and ends with the exit status of mpirun. Call it once
 * per process. */
#ifndef TARE_CORE_DIST_RANKS_H
#define TARE_CORE_DIST_RANKS_H

#include "config/config.h"
#include "dist/comm.h"

struct ranks_options {
    int64_t ranks;             /* dist.ranks; 0: as many as the launcher started */
    const char *where;         /* source of that setting, for messages */
    double timeout_s;          /* dist.timeout_s */
    enum communicator library; /* dist.communicator */
    bool device_memory;        /* run.device = cuda: the backend's memory is a GPU's */
};

/* Returns the number of ranks that the launcher started, 0 without a launcher; *rank: the rank of
 * this process (0 without). */
int ranks_launched(int *rank);
/* status, e: result so far (configuration loading); any rank's error aborts the job. If this
 * process only starts the ranks, *done is true, and ranks_end returns the exit status of the job.
 * Only rank 0 keeps its standard output and its messages below an error. */
tare_status ranks_start(const struct ranks_options *o, tare_status status, bool *done, struct err *e);
/* Does the same with the options of a configuration; NULL: it could not be read, and status is the
 * reason. */
tare_status ranks_start_of(const struct config *c, tare_status status, bool *done, struct err *e);
int ranks_end(tare_status status, const struct err *e);
/* Returns the exit status after an error that every rank meets before MPI is open and that rank 0
 * prints: exit_code on rank 0, 0 on the others. mpirun ends all ranks as soon as one ends with a
 * status that is not 0, and rank 0 might not have printed by then. */
int ranks_refused(int exit_code);

#endif
