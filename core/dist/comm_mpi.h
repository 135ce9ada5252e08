/* A communicator between processes over a transport's messages, supervised by watch.h. */
#ifndef TARE_CORE_DIST_COMM_MPI_H
#define TARE_CORE_DIST_COMM_MPI_H

#include "dist/comm.h"

/* Joins the job that a launcher started. timeout_s: see comm.h. An error that one rank meets alone
 * is returned on all. */
tare_status comm_mpi(double timeout_s, struct comm *out, struct err *e);
/* Writes the library that carries the messages ("Open MPI v4.1.4"), or why it is missing and how to
 * install it. */
tare_status comm_mpi_about(char *text, int64_t capacity, struct err *e);

#endif
