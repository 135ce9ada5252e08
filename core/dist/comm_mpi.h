/* Ranks that are processes: a communicator made of a transport's messages, watched over by watch.h. */
#ifndef TARE_CORE_DIST_COMM_MPI_H
#define TARE_CORE_DIST_COMM_MPI_H

#include "dist/comm.h"

/* Joins the job that a launcher started. timeout_s: see comm.h. What can fail alone on one rank fails on all. */
tare_status comm_mpi(double timeout_s, struct comm *out, struct err *e);
/* The library that carries the messages ("Open MPI v4.1.4"), or why there is none, and what to install. */
tare_status comm_mpi_about(char *text, int64_t room, struct err *e);

#endif
