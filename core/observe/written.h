/* Whether a run's records are still those that it wrote, by the sums of its chain.jsonl: for what reads a few of them. `tare reproduce` looks at all.
 *
 *   TRY(written_open("runs/one", &w, e));                          without a chain nothing is known, and nothing differs
 *   TRY(written_file(&w, "rollouts/step-000003.jsonl", e));        for each file that is read
 *   written_tell(&w);                                              one warning, which names the first that differs
 *
 * While a process writes the run nothing is said to differ: a file may be newer than its sum. */
#ifndef TARE_CORE_OBSERVE_WRITTEN_H
#define TARE_CORE_OBSERVE_WRITTEN_H

#include "base/json.h"
#include "observe/chain.h"

#include <stdbool.h>

struct written {
    char run[FS_PATH];
    json_t *sums, *lines;     /* name -> sum; step, as text -> sum of its line in metrics.jsonl */
    char first[FS_PATH + 64]; /* what differs, and where */
    int64_t changed;          /* how many files and lines do */
};

tare_status written_open(const char *run_dir, struct written *out, struct err *e);
/* The same where all that is asked about is of steps that are done for good, whoever writes the run. */
tare_status written_read(const char *run_dir, struct written *out, struct err *e);
void written_close(struct written *w);
/* False: it is another one than the run wrote. True also where no link names it. */
bool written_same(const struct written *w, const char *name, const void *data, int64_t n);
/* A file that is read; one that is not there differs in nothing. */
tare_status written_file(struct written *w, const char *name, struct err *e);
/* The lines of metrics.jsonl up to a step. */
tare_status written_metrics(struct written *w, int64_t last, struct err *e);
void written_tell(const struct written *w);
/* The metrics of one run: looked at, and told. */
tare_status written_tell_metrics(const char *run_dir, struct err *e);

#endif
