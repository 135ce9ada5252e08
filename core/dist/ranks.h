/* How a process becomes a rank of a job, and how the job ends. For verbs that run on several ranks:
 *
 *   config_load(...)                      status
 *   ranks_start_of(&config, status, &e)   several processes join; the error of one is the error of all
 *   ...comm_open...                       work
 *   return ranks_end(status, &e);         prints the error once, ends all ranks, gives the exit status
 *
 * Under mpirun or srun the ranks are those that the launcher started. Without one and with dist.ranks > 1 this process starts mpirun with its
 * own arguments, passes signals on (SIGINT and SIGTERM reach the ranks as SIGUSR1), waits, and ends as mpirun ends. Once a process. */
#ifndef TARE_CORE_DIST_RANKS_H
#define TARE_CORE_DIST_RANKS_H

#include "config/config.h"
#include "dist/comm.h"

struct ranks_options {
    int64_t ranks;             /* dist.ranks; 0: as the launcher says */
    const char *where;         /* where that was set, for messages */
    double timeout_s;          /* dist.timeout_s */
    enum communicator library; /* dist.communicator */
    bool device_memory;        /* run.device = cuda: the backend's memory is a GPU's */
};

/* How many ranks the launcher started, 0 without a launcher; *rank: which one this is (0 without). */
int ranks_launched(int *rank);
/* status, e: how this process fared so far (its configuration); the first error of any rank ends all. When this process only starts the
 * ranks, *done is true, and ranks_end gives the exit status of the job. Only rank 0 keeps its standard output and its messages below an error. */
tare_status ranks_start(const struct ranks_options *o, tare_status status, bool *done, struct err *e);
/* The same as the configuration says; NULL: it could not be read, and status is why. */
tare_status ranks_start_of(const struct config *c, tare_status status, bool *done, struct err *e);
int ranks_end(tare_status status, const struct err *e);
/* The exit status after a refusal that every rank meets before MPI is open and rank 0 prints: exit_code on rank 0, 0 on the others. mpirun ends all
 * ranks as soon as one ends with a status that is not 0, and rank 0 may not have printed by then. */
int ranks_refused(int exit_code);

#endif
