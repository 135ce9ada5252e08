/* Filters the messages of mpirun about ranks that end. Open MPI 5 has no option to suppress them,
 * and a job must end with one message. */
#ifndef TARE_CORE_DIST_LAUNCH_REPORT_H
#define TARE_CORE_DIST_LAUNCH_REPORT_H

#include "base/str.h"

#include <stdbool.h>

struct launch_report {
    int to;           /* file descriptor for all other text */
    struct str ends;  /* reports on how ranks ended */
    struct str block; /* lines after the first rule, until the second arrives */
    int64_t dashes;   /* number of dashes at the start of the line; -1: other text has followed */
    bool inside;
};

/* Takes the next n bytes of mpirun's output. Text is passed on immediately, except between two
 * lines of dashes. */
void launch_report_take(struct launch_report *r, const char *text, int64_t n);
/* Passes on the remaining text. The caller frees `ends`. */
void launch_report_end(struct launch_report *r);

#endif
