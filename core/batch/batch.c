#include "batch/table.h"

#include <string.h>

static int64_t count_field(const struct batch *b, enum batch_axis axis)
{
#define COUNT(AXIS, COUNT, PARENT, BEGIN) b->COUNT,
    return (const int64_t[]){BATCH_AXES(COUNT)}[axis];
}

tare_status batch_alloc(struct batch *b, unsigned stages, struct arena *a, struct err *e)
{
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const struct batch_column *t = &BATCH_TABLE[c];
        if (!(t->stage & stages) || batch_may_lack(t->kind)) continue;
        TRY(batch_new_array(b, c, count_field(b, t->axis), a, e));
    }
    return TARE_OK;
}

tare_status batch_regular(struct batch *b, int64_t rollouts, int64_t prompt, int64_t completion, struct arena *a, struct err *e)
{
    b->n_prompt_tokens = b->n_groups * prompt;
    b->n_rollouts = b->n_groups * rollouts;
    b->n_tokens = b->n_rollouts * completion;
    TRY(arena_new(a, &b->prompt_begin, b->n_groups + 1, e));
    TRY(arena_new(a, &b->group_begin, b->n_groups + 1, e));
    TRY(arena_new(a, &b->token_begin, b->n_rollouts + 1, e));
    for (int64_t m = 0; m <= b->n_groups; m++) {
        b->prompt_begin[m] = m * prompt;
        b->group_begin[m] = m * rollouts;
    }
    for (int64_t i = 0; i <= b->n_rollouts; i++) b->token_begin[i] = i * completion;
    return TARE_OK;
}

int64_t batch_bytes(const struct batch *b)
{
    int64_t bytes = 0;
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const enum batch_kind kind = BATCH_TABLE[c].kind;
        if (!b->n_turns && (kind == KIND_MASK || kind == KIND_OPTIONAL_BEGIN)) continue;
        bytes += (int64_t)BATCH_TABLE[c].size * batch_width(b, c) * count_field(b, BATCH_TABLE[c].axis);
    }
    return bytes;
}

void batch_adopt(struct batch *to, const struct batch *from, unsigned stages)
{
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        if (!(BATCH_TABLE[c].stage & stages)) continue;
        batch_set_array(to, c, batch_array(from, c));
        if (batch_is_begin(BATCH_TABLE[c].kind)) batch_set_count(to, batch_child(c), count_field(from, batch_child(c)));
    }
    if (stages & BATCH_VERIFY) to->n_components = from->n_components;
    if (stages & BATCH_CLUSTER) to->n_clusters = from->n_clusters;
}
