#include "rollout/prompts.h"

#include <string.h>

tare_status rollout_prompts(const struct prompts *p, const struct chosen_rows *chosen, struct token_ids *ids, struct batch *b,
                            struct arena *a, struct err *e)
{
    const int64_t n = chosen->n;
    b->n_groups = n;
    TRY(arena_new(a, &b->row, n, e));
    TRY(arena_new(a, &b->row_json, n, e));
    TRY(arena_new(a, &b->prompt_uid, n, e));
    TRY(arena_new(a, &b->occurrence, n, e));
    TRY(arena_new(a, &b->prompt_begin, n + 1, e));
    ids->n = 0;
    for (int64_t m = 0; m < n; m++) {
        b->row[m] = &chosen->data->rows[chosen->rows[m]];
        b->row_json[m] = b->row[m]->json;
        b->prompt_uid[m] = b->row[m]->uid;
        b->occurrence[m] = chosen->occurrence ? chosen->occurrence[m] : 0;
        TRY(prompts_encode(p, b->row[m], ids, e));
        b->prompt_begin[m + 1] = ids->n;
        if (b->prompt_begin[m + 1] == b->prompt_begin[m]) FAIL(e, TARE_E_INVALID, "%s: the prompt has no token", b->row[m]->where);
    }
    TRY(arena_new_raw(a, &b->prompt_ids, ids->n, e));
    b->n_prompt_tokens = ids->n;
    memcpy(b->prompt_ids, ids->data, (size_t)ids->n * sizeof *ids->data);
    return TARE_OK;
}
