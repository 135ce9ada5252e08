/* A forward pass under construction, row by row. */
#ifndef TARE_CORE_ROLLOUT_ROWS_H
#define TARE_CORE_ROLLOUT_ROWS_H

#include "model/model.h"

struct rows {
    int32_t *ids, *pos;
    int64_t *write_row, *write_slot, *out_rows;
    struct attn_seq *seqs;
    int64_t t, n_seqs, n_out;
};

/* Allocates t rows of n_seqs sequences from the arena, which is reset. */
tare_status rows_new(struct arena *a, int64_t t, int64_t n_seqs, struct rows *r, struct err *e);
/* Appends n tokens of a sequence from position pos on, with its cache blocks. wanted: output the
 * last one. */
void rows_add(struct rows *r, const int32_t *ids, int64_t n, int64_t pos, const int32_t *blocks, bool wanted);
/* Also outputs rows row .. row + n, after all rows requested before. */
void rows_want(struct rows *r, int64_t row, int64_t n);
struct forward_batch rows_batch(const struct rows *r);

#endif
