/* The columns that a curriculum gets, from its wants (plugin/columns.h). */
#ifndef TARE_CORE_CURRICULUM_COLUMNS_H
#define TARE_CORE_CURRICULUM_COLUMNS_H

#include "data/dataset.h"
#include "plugin/plugin.h"

struct row_columns {
    const double **field;    /* [n_wants] of "row.KEY": [R]; else NULL */
    const tare_column *rows; /* [n_wants] those on the axis ROW, for tare_dataset */
};
/* Reads the fields of all rows that the values want. Everything is in the arena. */
tare_status row_columns_read(const struct plugin *p, const tare_value *values, const struct dataset *data, struct arena *a,
                             struct row_columns *out, struct err *e);

/* Groups with verdicts, as the curriculum sees them. */
struct group_columns {
    int64_t n_groups, n_rollouts, n_turns, n_tokens;
    const int64_t *row;         /* [M] index into the data set */
    const uint64_t *uid;        /* [M] */
    const int64_t *group_begin; /* [M+1] */
    const int64_t *turn_begin;  /* [N+1] */
    const int64_t *token_begin; /* [N+1] */
    const int64_t *act_begin;   /* [U] indices into [T] */
    const int64_t *act_end;     /* [U] */
    const uint8_t *sampled;     /* [T] */
    const int64_t *length;      /* [N] */
    const double *reward;       /* [N] */
    const int32_t *verdict;     /* [N] */
    const uint8_t *finish;      /* [N] */
    const uint8_t *fate;        /* [N]; NULL in keep */
};
/* Makes the batch that the plugin gets; step and n_before are the caller's. */
tare_status group_columns_show(const struct plugin_instance *i, const struct row_columns *rows, const struct group_columns *g,
                               struct arena *a, tare_batch *out, struct err *e);

#endif
