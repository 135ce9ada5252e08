/* What mpirun prints about ranks that end. Open MPI 5 has no option that leaves it out, and a job has to end with one message. */
#ifndef TARE_CORE_DIST_LAUNCH_REPORT_H
#define TARE_CORE_DIST_LAUNCH_REPORT_H

#include "base/str.h"

#include <stdbool.h>

struct launch_report {
    int to;           /* file descriptor that all other text goes to */
    struct str ends;  /* reports on how ranks ended */
    struct str block; /* lines between two rules, while the second is awaited */
    int64_t dashes;   /* dashes that the line begins with; -1: something else has come after them */
    bool inside;
};

/* Takes the next n bytes that mpirun has written. Text is passed on at once, except between two lines of dashes. */
void launch_report_take(struct launch_report *r, const char *text, int64_t n);
/* Passes on what is left. `ends` stays, for the caller to free. */
void launch_report_end(struct launch_report *r);

#endif
