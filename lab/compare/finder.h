/* State shared by the parts of a comparison. Internal to lab/compare. */
#ifndef TARE_LAB_COMPARE_FINDER_H
#define TARE_LAB_COMPARE_FINDER_H

#include "base/fs.h"
#include "data/tokenizer.h"
#include "lab/compare/compare.h"

/* A line of metrics.jsonl. */
struct record {
    json_t *row;
    int64_t step;
};

struct finder {
    const struct compare_options *o;
    json_t *result;
    struct records {
        struct record *at; /* increasing steps */
        int64_t n, capacity;
    } records[2];
    json_t *manifest[2];         /* NULL: missing or damaged, and listed as such */
    struct tokenizer *tokenizer; /* of the first run that has one; may be NULL */
};

struct difference {
    const char *what;
    int64_t step;
    const char *where;
    json_t *a, *b; /* ownership is transferred */
    int64_t count; /* 0: not counted */
};

/* Returns the row of metrics.jsonl of a step by binary search; NULL if there is none. */
json_t *compare_row_of_step(const struct records *r, int64_t step);

/* True if a difference of this kind has been found. */
bool compare_found(const struct finder *f, const char *what);
/* Keeps the first difference of each kind. */
tare_status compare_add_difference(struct finder *f, const struct difference *d, struct err *e);
/* list: "damaged" or "notes". */
tare_status compare_add_text(struct finder *f, const char *list, const char *text, struct err *e);
tare_status compare_count(struct finder *f, const char *what, struct err *e);
/* Counts a record that only this run (0 or 1) has, among the steps that both have. */
tare_status compare_count_only(struct finder *f, int run, const char *what, struct err *e);

/* Returns the first common step whose metrics differ, or INT64_MAX. */
int64_t compare_different_step(const struct finder *f);

/* Compares the dumps and the estimator's states of a step (rollouts.c). */
tare_status compare_step_files(struct finder *f, int64_t step, struct err *e);
/* Compares the checkpoints of a step that both runs have (tensors.c). */
tare_status compare_checkpoints(struct finder *f, int64_t step, struct err *e);
/* Adds to "damaged" the records up to step `last` that a run's chain.jsonl lists and that are missing
 * (missing.c). */
tare_status compare_missing(struct finder *f, int64_t last, struct err *e);
/* Adds the curve of the metric (curve.c). */
tare_status compare_curve(struct finder *f, struct err *e);

#endif
