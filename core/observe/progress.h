/* Progress on standard error: a redrawn line on a terminal; elsewhere plain lines, at most one
 * every ten seconds and the last one; nothing if the log level hides messages below warnings. */
#ifndef TARE_CORE_OBSERVE_PROGRESS_H
#define TARE_CORE_OBSERVE_PROGRESS_H

#include "base/err.h"
#include "config/choices.h"

struct progress;
struct progress_values { /* NaN: not shown */
    double reward, length, entropy, tokens_per_second;
    /* effective-signal ratio, and the share of groups with an advantage, shown as "signal A/B" */
    double signal, advantage;
};

/* form: log.progress. done: steps done of total. what: "train", shown first. */
tare_status progress_new(enum progress_form form, const char *what, int64_t done, int64_t total, struct progress **out,
                         struct err *e);
void progress_step(struct progress *p, int64_t done, const struct progress_values *v);
void progress_free(struct progress *p); /* removes the line; no-op for NULL */
struct progress_place {
    const char *what;
    int64_t done, total;
    double left; /* seconds; NaN: unknown */
};
/* Prints "step 12/500 reward 0.312 ..." in at most n bytes. */
void progress_print(char *text, int64_t n, struct progress_place at, const struct progress_values *v);

#endif
