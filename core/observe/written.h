/* Compares a run's records with the checksums in chain.jsonl, for commands that read some of them.
 * `tare reproduce` checks all.
 *
 *   TRY(written_open("runs/one", &w, e));                    without a chain, nothing is compared
 *   TRY(written_file(&w, "rollouts/step-000003.jsonl", e));  for each file that is read
 *   written_report(&w);                                      one warning, with the first difference
 *
 * While a process writes the run no difference is reported, because a file may be newer than its
 * checksum. */
#ifndef TARE_CORE_OBSERVE_WRITTEN_H
#define TARE_CORE_OBSERVE_WRITTEN_H

#include "base/json.h"
#include "observe/chain.h"

#include <stdbool.h>

struct written {
    char run[FS_PATH];
    /* name -> checksum; step as text -> checksum of its line in metrics.jsonl */
    json_t *sums, *lines;
    char first[FS_PATH + 64]; /* first difference and its file */
    int64_t changed;          /* number of files and lines that differ */
};

tare_status written_open(const char *run_dir, struct written *out, struct err *e);
/* Like written_open, for records of finished steps only, which can be compared even while a process
 * writes the run. */
tare_status written_read(const char *run_dir, struct written *out, struct err *e);
void written_close(struct written *w);
/* Returns false if the data differs from what the run wrote, true if it is equal or no link names
 * it. */
bool written_same(const struct written *w, const char *name, const void *data, int64_t n);
/* Compares a file; a missing file is not a difference. */
tare_status written_file(struct written *w, const char *name, struct err *e);
/* Compares the lines of metrics.jsonl up to a step. */
tare_status written_metrics(struct written *w, int64_t last, struct err *e);
void written_report(const struct written *w);
/* Compares the metrics of one run and warns about a difference. */
tare_status written_report_metrics(const char *run_dir, struct err *e);

#endif
