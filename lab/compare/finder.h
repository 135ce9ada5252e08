/* What the parts of a comparison share. Internal to lab/compare. */
#ifndef TARE_LAB_COMPARE_FINDER_H
#define TARE_LAB_COMPARE_FINDER_H

#include "base/fs.h"
#include "data/tokenizer.h"
#include "lab/compare/compare.h"

struct record { /* metrics.jsonl */
    json_t *row;
    int64_t step;
};

struct finder {
    const struct compare_options *o;
    json_t *result;
    struct records {
        struct record *at; /* steps growing */
        int64_t n, room;
    } records[2];
    json_t *manifest[2];         /* NULL: it is missing or damaged, and listed as that */
    struct tokenizer *tokenizer; /* of the first run; NULL: none could be read */
};

struct difference {
    const char *what;
    int64_t step;
    const char *where;
    json_t *a, *b; /* taken over */
    int64_t count; /* 0: not counted */
};

/* Whether a difference of this kind has been found. */
bool found(const struct finder *f, const char *what);
/* The first of its kind is kept. */
tare_status compare_add_difference(struct finder *f, const struct difference *d, struct err *e);
/* list: damaged or notes */
tare_status compare_add_text(struct finder *f, const char *list, const char *text, struct err *e);
tare_status compare_count(struct finder *f, const char *what, struct err *e);

/* rollouts.c: the dumps and the estimator's states of a step. */
tare_status compare_step_files(struct finder *f, int64_t step, struct err *e);
/* tensors.c: the checkpoints of a step that both runs have. */
tare_status compare_checkpoints(struct finder *f, int64_t step, struct err *e);
/* curve.c */
tare_status compare_curve(struct finder *f, struct err *e);

#endif
