#include "rollout/rows.h"

tare_status rows_new(struct arena *a, int64_t t, int64_t n_seqs, struct rows *r, struct err *e)
{
    *r = (struct rows){0};
    arena_reset(a);
    TRY(arena_new_raw(a, &r->ids, t, e));
    TRY(arena_new_raw(a, &r->pos, t, e));
    TRY(arena_new_raw(a, &r->write_row, t, e));
    TRY(arena_new_raw(a, &r->write_slot, t, e));
    TRY(arena_new_raw(a, &r->seqs, n_seqs, e));
    return arena_new_raw(a, &r->out_rows, n_seqs + t, e);
}

void rows_add(struct rows *r, const int32_t *ids, int64_t n, int64_t pos, const int32_t *blocks, bool wanted)
{
    r->seqs[r->n_seqs++] = (struct attn_seq){.q_begin = r->t, .q_len = n, .pos = pos, .blocks = blocks};
    for (int64_t i = 0; i < n; i++, r->t++) {
        r->ids[r->t] = ids[i];
        r->pos[r->t] = (int32_t)(pos + i);
        r->write_row[r->t] = r->t;
        r->write_slot[r->t] = (int64_t)blocks[(pos + i) / KV_BLOCK] * KV_BLOCK + (pos + i) % KV_BLOCK;
    }
    if (wanted) r->out_rows[r->n_out++] = r->t - 1;
}

void rows_want(struct rows *r, int64_t row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) r->out_rows[r->n_out++] = row + i;
}

struct forward_batch rows_batch(const struct rows *r)
{
    return (struct forward_batch){.t = r->t,
                                  .ids = r->ids,
                                  .pos = r->pos,
                                  .write_row = r->write_row,
                                  .write_slot = r->write_slot,
                                  .n_writes = r->t,
                                  .row_by_row = true,
                                  .seqs = r->seqs,
                                  .n_seqs = r->n_seqs,
                                  .out_rows = r->out_rows,
                                  .n_out = r->n_out};
}
